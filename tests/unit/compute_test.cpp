// A whole array in slices: each row is computed once, at its place, however small the slices are.
#include "tools/compute.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "api/executable.hpp"
#include "tools/exit_code.hpp"
#include "tools/work.hpp"

namespace {

using namespace jitsoftmax;
using namespace jitsoftmax::tools;

// A kernel that only notes what it is asked for.
class Notes final : public Executable {
 public:
  void launch(const Rows& rows, Stream) const override { launches.push_back(rows); }
  [[nodiscard]] std::vector<std::string> specializations() const override { return {}; }
  [[nodiscard]] std::vector<Origin> origins() const override { return {}; }
  [[nodiscard]] std::string specialization_for(const Rows&) const override { return {}; }
  mutable std::vector<Rows> launches;
};

}  // namespace

TEST_CASE("slices cover the outer dimension once and in order") {
  std::vector<std::byte> in(7 * 3 * 5 * 2);
  std::vector<std::byte> out(7 * 3 * 5 * 4);
  Work work;
  work.problem.cols = 3;
  work.problem.in = DType::f16;
  work.problem.out = DType::f32;
  work.problem.layout = Layout::strided;
  work.split = {7, 3, 5};
  work.scale = 0.5F;
  work.in = in.data();
  work.out = out.data();
  const std::size_t step = 3 * 5 * (2 + 4);  // bytes of one step of the outer dimension

  for (const auto& [budget, steps] : {std::pair<std::size_t, std::int64_t>{0, 1},
                                      {step, 1},
                                      {2 * step - 1, 1},
                                      {2 * step, 2},
                                      {6 * step, 6},
                                      {7 * step, 7},
                                      {1000 * step, 7}}) {
    CAPTURE(budget);
    const auto notes = std::make_shared<Notes>();
    compute_on_host(Kernel(notes), work, budget);
    std::int64_t done = 0;
    for (const Rows& rows : notes->launches) {
      CHECK(rows.in == in.data() + done * 3 * 5 * 2);
      CHECK(rows.out == out.data() + done * 3 * 5 * 4);
      CHECK(rows.count == std::min(steps, 7 - done) * 5);
      CHECK(rows.inner == 5);
      CHECK(rows.in_stride == 0);
      CHECK(rows.out_stride == 0);
      CHECK(rows.scale == 0.5F);
      done += rows.count / 5;
    }
    CHECK(done == 7);
  }
}

TEST_CASE("an axis splits a shape in outer, columns and inner") {
  const std::vector<std::int64_t> shape{2, 3, 5, 7};
  const auto check = [&](std::int64_t axis, std::int64_t outer, std::int64_t cols, std::int64_t inner) {
    const Split result = split(shape, axis_of(shape, axis));
    CHECK(result.outer == outer);
    CHECK(result.cols == cols);
    CHECK(result.inner == inner);
  };
  check(0, 1, 2, 105);
  check(1, 2, 3, 35);
  check(-2, 6, 5, 7);
  check(-1, 30, 7, 1);
  check(-4, 1, 2, 105);
  for (const std::int64_t axis : {std::int64_t{4}, std::int64_t{-5}, INT64_MIN, INT64_MAX}) {
    CHECK_THROWS_WITH_AS((void)axis_of(shape, axis), doctest::Contains("from -4 to 3"), Failure);
  }
}
