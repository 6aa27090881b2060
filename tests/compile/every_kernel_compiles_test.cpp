// Promise: every architecture that NVRTC knows compiles every family for every pair of types, and
// nothing that the library chooses by itself uses local memory.
#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "compile/nvrtc.hpp"
#include "jit/compiler.hpp"
#include "plan/candidates.hpp"
#include "plan/choice.hpp"
#include "plan/variants.hpp"

using namespace jitsoftmax;

namespace {

constexpr std::pair<DType, DType> type_pairs[] = {
    {DType::f16, DType::f16}, {DType::bf16, DType::bf16}, {DType::f32, DType::f32},  {DType::f64, DType::f64},
    {DType::f16, DType::f32}, {DType::bf16, DType::f32},  {DType::f32, DType::bf16}, {DType::f32, DType::f16}};

struct Item {
  plan::Specialization specialization;
  Arch arch;
};

// Compiles all items on all cores; returns what `complaint` says of any of them.
template <class Complaint>
std::vector<std::string> compile_all(jit::Compiler& compiler, const std::vector<Item>& items, Complaint complaint) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::vector<std::string> complaints;
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      workers.emplace_back([&] {
        for (std::size_t at = next++; at < items.size(); at = next++) {
          const Item& item = items[at];
          std::string text;
          try {
            text = complaint(compiler.compile(jit::program(item.specialization, item.arch)));
          } catch (const Error& error) {
            text = error.what();
          }
          if (text.empty()) continue;
          const std::lock_guard lock(mutex);
          complaints.push_back(plan::name_expression(item.specialization) + " for " + item.arch.name() + ": " + text);
        }
      });
    }
  }
  return complaints;
}

}  // namespace

TEST_CASE("every architecture compiles every family and every pair of types") {
  jit::Compiler compiler = testing::compiler_or_skip();
  std::vector<Item> items;
  for (const Arch& arch : compiler.architectures()) {
    for (const auto& [in, out] : type_pairs) {
      // One operation a pair, in turn: they share all code but three lines.
      const Op op = items.size() % 2 == 0 ? Op::softmax : Op::log_softmax;
      const Problem rows{.cols = 1000, .in = in, .out = out, .op = op};
      Problem columns = rows;
      columns.layout = Layout::strided;
      for (const char* variant : {"safe3", "v1", "v3", "generic"}) {
        items.push_back({plan::choose(rows, arch, Variant{.name = variant}).back(), arch});
      }
      items.push_back({plan::choose(columns, arch).back(), arch});
    }
  }
  const auto complaints = compile_all(
      compiler, items, [](const jit::Cubin& cubin) { return std::string(cubin.payload.empty() ? "empty cubin" : ""); });
  CAPTURE(items.size());
  for (const std::string& complaint : complaints) MESSAGE(complaint);
  CHECK(complaints.empty());
}

TEST_CASE("nothing that is chosen uses local memory") {
  jit::Compiler compiler = testing::compiler_or_skip();
  const Arch arch{9, 0, 0};
  std::vector<Item> items;
  const auto add = [&](const Problem& problem, const Variant& variant) {
    for (const plan::Specialization& s : plan::choose(problem, arch, variant)) items.push_back({s, arch});
  };
  for (const auto& [in, out] : type_pairs) {
    for (const Op op : {Op::softmax, Op::log_softmax}) {
      if (in != out && op == Op::softmax) continue;  // log_softmax keeps more of a row in registers
      // The largest row of each shape of the registers family, an odd one, and one beyond it.
      for (const std::int64_t cols : {5, 100, 333, 1024, 4099, 8192, 16384, 32768, 50257, 131072, 1000003}) {
        add({.cols = cols, .in = in, .out = out, .op = op}, {});
      }
      for (const std::int64_t cols : {900, 1500, 4096})
        add({.cols = cols, .in = in, .out = out, .op = op, .layout = Layout::strided}, {});
    }
    for (const std::string& name : plan::variant_names())
      add({.cols = 4096, .in = in, .out = out}, Variant{.name = name});
  }
  const auto complaints = compile_all(compiler, items, [](const jit::Cubin& cubin) {
    const jit::Resources& used = cubin.resources;
    if (used.registers == 0) return std::string("the assembler's report was not understood");
    if (used.stack_bytes == 0 && used.spill_bytes == 0) return std::string();
    return std::to_string(used.stack_bytes) + " bytes of stack, " + std::to_string(used.spill_bytes) + " of spills";
  });
  CAPTURE(items.size());
  for (const std::string& complaint : complaints) MESSAGE(complaint);
  CHECK(complaints.empty());
}

// The one family that is meant to use local memory, and that nothing chooses.
TEST_CASE("a row in registers takes local memory where its trip count is known only at the launch, and else none") {
  jit::Compiler compiler = testing::compiler_or_skip();
  const Arch arch{9, 0, 0};
  std::vector<Item> items;
  for (const auto& [in, out] : type_pairs) {
    for (const char* family : {"registers", "counted"}) {
      Variant variant;
      variant.family = family;
      variant.threads = 256;
      items.push_back({plan::choose({.cols = 4096, .in = in, .out = out}, arch, variant).front(), arch});
    }
  }
  for (const Item& item : items) {
    CAPTURE(plan::name_expression(item.specialization));
    const jit::Resources used = compiler.compile(jit::program(item.specialization, arch)).resources;
    if (item.specialization.family == plan::Family::counted) {
      const int element = plan::accumulator_bytes(item.specialization.in);
      CHECK(static_cast<int>(used.stack_bytes) >= item.specialization.config.elements * element);
    } else {
      CHECK(used.stack_bytes == 0);
      CHECK(used.spill_bytes == 0);
    }
  }
}
