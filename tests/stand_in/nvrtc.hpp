// A stand-in for libnvrtc: a "compile" gives a cubin that only the stand-in driver takes, named by the
// name expression, and can be made to wait or to fail. Options::nvrtc = nvrtc_file.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace jitsoftmax::stand_in {

[[nodiscard]] std::string nvrtc_file();

// The name expressions that were compiled so far, in the order in which the compiles began.
[[nodiscard]] std::vector<std::string> compiled();

// Every compile takes at least so long.
void compile_takes(std::chrono::milliseconds time);

// While on, compiles do not end. waiting(): how many are under way.
void hold_compiles(bool on);
[[nodiscard]] int waiting();

// Compiles of names with this part fail; "": none.
void refuse(const std::string& part);

}  // namespace jitsoftmax::stand_in
