// SharedLibrary: a library that is opened at run time.
#pragma once

#include <memory>
#include <string>

namespace jitsoftmax::base {

// Owns one handle. The code stays mapped when the last handle closes: NVRTC and libcuda have exit
// handlers and thread-local destructors of their own, which must not outlive their code. Pointers to
// functions are therefore valid until the process ends.
class SharedLibrary {
 public:
  SharedLibrary() = default;  // holds nothing

  // `name`: a path, or a name that the loader looks up in its own way. Holds nothing if that fails;
  // `error` then says why, with the name.
  [[nodiscard]] static SharedLibrary open(const std::string& name, std::string& error);

  // The library of this name, if the process already has it.
  [[nodiscard]] static SharedLibrary already_loaded(const std::string& name);

  // The file that the loader took; empty if it cannot be told.
  [[nodiscard]] std::string path() const;

  // Sets `function` to the exported function of this name, or to null.
  template <typename Function>
  bool resolve(Function*& function, const char* name) const noexcept {
    function = reinterpret_cast<Function*>(symbol(name));
    return function != nullptr;
  }

  [[nodiscard]] explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  struct Close {
    void operator()(void* handle) const noexcept;
  };
  explicit SharedLibrary(void* handle) noexcept : handle_(handle) {}
  [[nodiscard]] void* symbol(const char* name) const noexcept;

  std::unique_ptr<void, Close> handle_;
};

}  // namespace jitsoftmax::base
