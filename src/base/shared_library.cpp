#include "base/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

namespace jitsoftmax::base {

namespace {

// To open a named pipe that nobody writes to would take forever.
bool is_unfit(const std::string& path) {
  struct stat info {};
  return path.find('/') != std::string::npos && ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
}

// RTLD_LOCAL: nothing of the library may take part in the host program's symbol lookup.
constexpr int mode = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;

}  // namespace

SharedLibrary SharedLibrary::open(const std::string& name, std::string& error) {
  if (is_unfit(name)) {
    error = name + ": is no regular file";
    return {};
  }
  SharedLibrary library(::dlopen(name.c_str(), mode));
  if (!library) {
    const char* reason = ::dlerror();  // NOLINT(concurrency-mt-unsafe): the C library keeps one a thread
    error = reason != nullptr ? reason : "dlopen failed without a reason";
    // The loader names the file itself, except where it fails before it has one.
    if (error.find(name) == std::string::npos) error = name + ": " + error;
  }
  return library;
}

SharedLibrary SharedLibrary::already_loaded(const std::string& name) {
  return SharedLibrary(::dlopen(name.c_str(), mode | RTLD_NOLOAD));
}

std::string SharedLibrary::path() const {
  struct link_map* map = nullptr;
  if (!handle_ || ::dlinfo(handle_.get(), RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0 || map == nullptr) return {};
  return map->l_name;
}

void* SharedLibrary::symbol(const char* name) const noexcept { return ::dlsym(handle_.get(), name); }

void SharedLibrary::Close::operator()(void* handle) const noexcept { ::dlclose(handle); }

}  // namespace jitsoftmax::base
