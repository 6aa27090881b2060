// Code that a driver refuses, without a driver: what was found in a cache directory, and a loader that
// takes some of it.
#pragma once

#include <doctest/doctest.h>

#include <jitsoftmax/engine.hpp>
#include <string>
#include <vector>

#include "api/load_or_replace.hpp"
#include "cache/store.hpp"
#include "plan/choice.hpp"
#include "temporary_directory.hpp"

namespace jitsoftmax::testing {

struct RefusedCase {
  TemporaryDirectory directory;
  std::vector<std::string> warnings;
  const Arch arch{9, 0};
  const plan::Specialization specialization = plan::choose({.cols = 64}, arch).front();
  const jit::Program program = jit::program(specialization, arch);
  const cache::Key key = cache::key_of(program, jit::templates());

  // An entry in the directory of this name that every check lets pass. `tag` makes it a different one.
  std::string fill(const std::string& name, char tag) const {
    const jit::Cubin cubin{.payload = {'\x7f', 'E', 'L', 'F', tag}, .kernel = "k", .compiler = "13.0", .resources = {}};
    REQUIRE(cache::Store({.directory = directory / name}).put(key, program, cubin));
    return directory / name;
  }
  [[nodiscard]] char tag_in(const std::string& name) const {
    const auto found = cache::Store({.directory = directory / name}).find(key, program);
    return found ? found->payload[4] : '?';
  }
  [[nodiscard]] std::string path_in(const std::string& name) const { return cache::entry_path(directory / name, key); }

  Options options(const std::vector<std::string>& layers, const std::string& writable) {
    Options options;
    for (const std::string& layer : layers) options.cache_layers.push_back(directory / layer);
    options.cache_dir = writable.empty() ? "" : directory / writable;
    options.log = [this](LogLevel level, const std::string& message) {
      if (level >= LogLevel::warning) warnings.push_back(message);
    };
    return options;
  }
};

// Takes no entry of RefusedCase::fill() whose tag is one of these; remembers what it was offered.
class PickyLoader {
 public:
  explicit PickyLoader(std::string refused, bool refuses_compiled = false)
      : refused_(std::move(refused)), refuses_compiled_(refuses_compiled) {}

  std::vector<char> operator()(const jit::Cubin& cubin) {
    const bool filled = cubin.payload.size() == 5;
    offered += filled ? cubin.payload[4] : '*';
    if (filled ? refused_.find(cubin.payload[4]) != std::string::npos : refuses_compiled_)
      cuda::check(CUDA_ERROR_INVALID_IMAGE, "cuLibraryLoadData");
    return cubin.payload;
  }
  std::string offered;  // the tags, and * for what a compiler made

 private:
  std::string refused_;
  bool refuses_compiled_;
};

// As the engine does for a launch.
inline std::vector<char> load_for_launch(Code& code, const RefusedCase& test, PickyLoader& loader) {
  return load_or_replace(code, code.get(test.specialization, test.arch, Code::Purpose::launch), test.specialization,
                         test.arch, Code::Purpose::launch, [&](const jit::Cubin& cubin) { return loader(cubin); });
}

inline Stats stats_of(const Code& code) {
  Stats stats;
  code.report(stats);
  return stats;
}

}  // namespace jitsoftmax::testing
