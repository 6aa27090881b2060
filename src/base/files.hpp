// FileSystem: every file operation of the cache, behind one small interface so that tests can make
// each of them fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace jitsoftmax::base {

// Functions report failure through their std::error_code (errno values) and do not throw, except
// std::bad_alloc.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  struct Info {
    std::uint32_t mode = 0;  // st_mode
    std::uint32_t owner = 0;
    std::int64_t size = 0;
    std::int64_t modified = 0;  // seconds since 1970
  };

  // The whole of a regular file, and the facts of the file that was opened (so that trust is
  // decided on the open file). Refuses symbolic links (ELOOP), directories, fifos and anything
  // else that is not a regular file (EINVAL) without blocking, and files over `limit` (EFBIG).
  virtual std::vector<char> read(const std::string& path, std::int64_t limit, Info& info, std::error_code& error) = 0;

  // As read(), but no more than its first `count` bytes, however large the file is.
  virtual std::vector<char> read_start(const std::string& path, std::size_t count, Info& info,
                                       std::error_code& error) = 0;

  // The facts of a directory itself (ELOOP for a symbolic link, ENOTDIR for anything else).
  virtual Info directory_info(const std::string& path, std::error_code& error) = 0;

  // The facts of a regular file itself, without opening it (ELOOP for a symbolic link, EINVAL for
  // anything else).
  virtual Info file_info(const std::string& path, std::error_code& error) = 0;

  // The names in a directory, sorted, without "." and "..".
  virtual std::vector<std::string> list(const std::string& directory, std::error_code& error) = 0;

  // Creates the directory and its missing parents with mode 0700; an existing one is no error.
  virtual void create_directories(const std::string& path, std::error_code& error) = 0;

  // A new file, mode 0600, with an unpredictable name in `directory`, holding `bytes`, written,
  // fsynced and closed; returns its path. On failure no file is left.
  virtual std::string write_temporary(const std::string& directory, std::span<const char> bytes,
                                      std::error_code& error) = 0;

  // Makes now the time when the file was modified; a symbolic link is not followed.
  virtual void touch(const std::string& path, std::error_code& error) = 0;

  virtual void rename(const std::string& from, const std::string& to, std::error_code& error) = 0;
  virtual void remove(const std::string& path, std::error_code& error) = 0;
};

// Whether a file of this name, without its directory, is one that write_temporary() made.
[[nodiscard]] bool is_temporary(std::string_view name) noexcept;

// The real one. Stateless.
[[nodiscard]] FileSystem& file_system() noexcept;

}  // namespace jitsoftmax::base
