#include "jit/nvrtc.hpp"

#include <jitsoftmax/error.hpp>

namespace jitsoftmax::jit {

void Nvrtc::check(nvrtcResult result, const char* call) const {
  if (result == NVRTC_SUCCESS) return;
  const ErrorCode code = result == NVRTC_ERROR_OUT_OF_MEMORY               ? ErrorCode::out_of_memory
                         : result == NVRTC_ERROR_BUILTIN_OPERATION_FAILURE ? ErrorCode::no_compiler
                                                                           : ErrorCode::compile_failed;
  throw Error(code, std::string(call) + " of NVRTC " + version() + " (" + path + "): " + GetErrorString(result));
}

NvrtcProgram::NvrtcProgram(const Nvrtc& nvrtc, const std::string& text, std::span<const Header> headers)
    : nvrtc_(nvrtc) {
  std::vector<const char*> names, texts;
  for (const Header& header : headers) {
    names.push_back(header.name.c_str());
    texts.push_back(header.text.c_str());
  }
  nvrtc_.check(nvrtc_.CreateProgram(&program_, text.c_str(), "jitsoftmax.cu", static_cast<int>(headers.size()),
                                    texts.data(), names.data()),
               "nvrtcCreateProgram");
}

NvrtcProgram::~NvrtcProgram() { nvrtc_.DestroyProgram(&program_); }

void NvrtcProgram::add_name(const std::string& expression) {
  nvrtc_.check(nvrtc_.AddNameExpression(program_, expression.c_str()), "nvrtcAddNameExpression");
}

nvrtcResult NvrtcProgram::compile(std::span<const std::string> options) {
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  return nvrtc_.CompileProgram(program_, static_cast<int>(pointers.size()), pointers.data());
}

std::string NvrtcProgram::log() const {
  std::size_t size = 0;  // counts the terminating zero
  if (nvrtc_.GetProgramLogSize(program_, &size) != NVRTC_SUCCESS || size <= 1) return {};
  std::string text(size, '\0');
  if (nvrtc_.GetProgramLog(program_, text.data()) != NVRTC_SUCCESS) return {};
  text.resize(text.find_last_not_of(std::string("\n\0", 2)) + 1);
  return text;
}

std::string NvrtcProgram::lowered_name(const std::string& expression) const {
  const char* name = nullptr;  // lives as long as the program
  nvrtc_.check(nvrtc_.GetLoweredName(program_, expression.c_str(), &name), "nvrtcGetLoweredName");
  return name;
}

std::vector<char> NvrtcProgram::cubin() const {
  std::size_t size = 0;
  nvrtc_.check(nvrtc_.GetCUBINSize(program_, &size), "nvrtcGetCUBINSize");
  std::vector<char> bytes(size);
  if (size > 0) nvrtc_.check(nvrtc_.GetCUBIN(program_, bytes.data()), "nvrtcGetCUBIN");
  return bytes;
}

std::vector<char> NvrtcProgram::ptx() const {
  std::size_t size = 0;
  nvrtc_.check(nvrtc_.GetPTXSize(program_, &size), "nvrtcGetPTXSize");
  std::vector<char> bytes(size);
  if (size > 0) nvrtc_.check(nvrtc_.GetPTX(program_, bytes.data()), "nvrtcGetPTX");
  return bytes;
}

}  // namespace jitsoftmax::jit
