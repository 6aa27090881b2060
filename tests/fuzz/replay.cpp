// The main() of a target that is built without libFuzzer: runs each file of the folders given, and what
// is left of it when it is cut off.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/fuzz_target.hpp"

namespace {

namespace fs = std::filesystem;

void run(const std::string& bytes) {
  const auto exact = std::make_unique<std::uint8_t[]>(bytes.size());
  std::memcpy(exact.get(), bytes.data(), bytes.size());
  (void)LLVMFuzzerTestOneInput(exact.get(), bytes.size());
}

std::vector<fs::path> files_in(const char* folder) {
  std::vector<fs::path> files;
  for (const auto& item : fs::directory_iterator(folder)) files.push_back(item.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int count, char** arguments) {
  std::size_t inputs = 0;
  for (int i = 1; i < count; ++i) {
    for (const fs::path& path : files_in(arguments[i])) {
      std::fprintf(stderr, "%s\n", path.c_str());  // the last one is the one that failed
      std::ifstream file(path, std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(file), {}};
      for (std::size_t size = 0; size <= bytes.size(); size += 1 + bytes.size() / 64) run(bytes.substr(0, size));
      run(bytes);
      ++inputs;
    }
  }
  std::printf("%zu files\n", inputs);
  return inputs > 0 ? 0 : 1;
}
