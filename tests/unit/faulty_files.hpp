// File systems for tests: the real one, and the real one of which one operation fails.
#pragma once

#include <new>

#include "base/files.hpp"

namespace fixtures {

using jitsoftmax::base::FileSystem;

class RealFiles : public FileSystem {
 public:
  std::vector<char> read(const std::string& path, std::int64_t limit, Info& info, std::error_code& error) override {
    return real_.read(path, limit, info, error);
  }
  std::vector<char> read_start(const std::string& path, std::size_t count, Info& info,
                               std::error_code& error) override {
    return real_.read_start(path, count, info, error);
  }
  Info directory_info(const std::string& path, std::error_code& error) override {
    return real_.directory_info(path, error);
  }
  Info file_info(const std::string& path, std::error_code& error) override { return real_.file_info(path, error); }
  std::vector<std::string> list(const std::string& directory, std::error_code& error) override {
    return real_.list(directory, error);
  }
  void create_directories(const std::string& path, std::error_code& error) override {
    real_.create_directories(path, error);
  }
  std::string write_temporary(const std::string& directory, std::span<const char> bytes,
                              std::error_code& error) override {
    return real_.write_temporary(directory, bytes, error);
  }
  void touch(const std::string& path, std::error_code& error) override { real_.touch(path, error); }
  void rename(const std::string& from, const std::string& to, std::error_code& error) override {
    real_.rename(from, to, error);
  }
  void remove(const std::string& path, std::error_code& error) override { real_.remove(path, error); }

 private:
  FileSystem& real_ = jitsoftmax::base::file_system();
};

enum class Operation {
  read,
  directory_info,
  file_info,
  list,
  create_directories,
  write_temporary,
  touch,
  rename,
  remove
};

// `error` 0: no memory.
class FaultyFiles final : public RealFiles {
 public:
  FaultyFiles(Operation operation, int error) : operation_(operation), error_(error) {}

  std::vector<char> read(const std::string& path, std::int64_t limit, Info& info, std::error_code& error) override {
    if (fails(Operation::read, error)) return {};
    return RealFiles::read(path, limit, info, error);
  }
  std::vector<char> read_start(const std::string& path, std::size_t count, Info& info,
                               std::error_code& error) override {
    if (fails(Operation::read, error)) return {};
    return RealFiles::read_start(path, count, info, error);
  }
  Info directory_info(const std::string& path, std::error_code& error) override {
    if (fails(Operation::directory_info, error)) return {};
    return RealFiles::directory_info(path, error);
  }
  Info file_info(const std::string& path, std::error_code& error) override {
    if (fails(Operation::file_info, error)) return {};
    return RealFiles::file_info(path, error);
  }
  std::vector<std::string> list(const std::string& directory, std::error_code& error) override {
    if (fails(Operation::list, error)) return {};
    return RealFiles::list(directory, error);
  }
  void create_directories(const std::string& path, std::error_code& error) override {
    if (!fails(Operation::create_directories, error)) RealFiles::create_directories(path, error);
  }
  std::string write_temporary(const std::string& directory, std::span<const char> bytes,
                              std::error_code& error) override {
    if (fails(Operation::write_temporary, error)) return {};
    return RealFiles::write_temporary(directory, bytes, error);
  }
  void touch(const std::string& path, std::error_code& error) override {
    if (!fails(Operation::touch, error)) RealFiles::touch(path, error);
  }
  void rename(const std::string& from, const std::string& to, std::error_code& error) override {
    if (!fails(Operation::rename, error)) RealFiles::rename(from, to, error);
  }
  void remove(const std::string& path, std::error_code& error) override {
    if (!fails(Operation::remove, error)) RealFiles::remove(path, error);
  }

 private:
  bool fails(Operation operation, std::error_code& error) const {
    if (operation != operation_) return false;
    if (error_ == 0) throw std::bad_alloc();
    error.assign(error_, std::generic_category());
    return true;
  }

  Operation operation_;
  int error_;
};

}  // namespace fixtures
