// Promise: a launch of a kernel that is ready allocates nothing, takes no lock, and asks the driver for no
// more than it needs.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <pthread.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#include "stand_in/engine_case.hpp"

using namespace jitsoftmax;
using namespace jitsoftmax::testing;

namespace {

thread_local std::uint64_t allocations = 0;
thread_local std::uint64_t locks = 0;

}  // namespace

// Not inlined: GCC would take a malloc() seen at one end for a mismatch with the other.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

// The thread sanitizer has this one itself.
#ifndef __SANITIZE_THREAD__
extern "C" int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int(pthread_mutex_t*);
  static Lock* const real = reinterpret_cast<Lock*>(::dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++locks;
  return real(mutex);
}
#endif

namespace {

constexpr Problem problem{.cols = 4096};
constexpr int repeats = 100;

struct Cost {
  std::uint64_t launches = 0;
  std::uint64_t allocations = 0;
  std::uint64_t locks = 0;
  std::uint64_t context_calls = 0;
  friend bool operator==(const Cost&, const Cost&) = default;
};

// Of `repeats` times the body, once it has been run.
template <class Body>
Cost cost_of(Body body) {
  stand_in::observe(false);
  body();
  const Cost before{stand_in::launches(), allocations, locks, stand_in::context_calls()};
  for (int i = 0; i < repeats; ++i) body();
  const Cost cost{stand_in::launches() - before.launches, allocations - before.allocations, locks - before.locks,
                  stand_in::context_calls() - before.context_calls};
  stand_in::observe(true);
  return cost;
}

Cost free_but(std::uint64_t context_calls) {
  return {.launches = repeats, .allocations = 0, .locks = 0, .context_calls = repeats * context_calls};
}

}  // namespace

#define CHECK_COST(cost, expected) \
  do {                             \
    const Cost c = (cost);         \
    CAPTURE(c.launches);           \
    CAPTURE(c.allocations);        \
    CAPTURE(c.locks);              \
    CAPTURE(c.context_calls);      \
    CHECK(c == (expected));        \
  } while (false)

TEST_CASE("the counters count") {
  const std::uint64_t before = allocations;
  ::operator delete(::operator new(1));
  CHECK(allocations == before + 1);
#ifndef __SANITIZE_THREAD__
  std::mutex mutex;
  const std::uint64_t locked = locks;
  mutex.lock();
  mutex.unlock();
  CHECK(locks == locked + 1);
#endif
}

TEST_CASE("on the current context: no allocation, no lock; the engine asks for the device once") {
  const CurrentDevice device;
  for (const OnMiss on_miss : {OnMiss::compile, OnMiss::background}) {
    Options options = stand_in_options();
    options.on_miss = on_miss;
    Engine engine(options);
    const Kernel kernel = engine.prepare(problem);
    CHECK_COST(cost_of([&] { kernel.launch(some_rows()); }), free_but(0));
    CHECK_COST(cost_of([&] { engine.softmax(problem, some_rows()); }), free_but(1));
    // Another of the bundle, which may look for its workspace.
    const Problem few{.cols = 65536};
    (void)engine.prepare(few);
    CHECK(cost_of([&] { engine.softmax(few, some_rows(4)); }).allocations == 0);
  }
}

TEST_CASE("a programmatic launch costs no more") {
  const CurrentDevice device;
  Options options = stand_in_options();
  options.programmatic_launch = true;
  Engine engine(options);
  const Kernel kernel = engine.prepare(problem);
  CHECK_COST(cost_of([&] { kernel.launch(some_rows()); }), free_but(0));
  CHECK_COST(cost_of([&] { engine.softmax(problem, some_rows()); }), free_but(1));
}

TEST_CASE("on a device of its own an engine asks for the current context, and makes its own current if need be") {
  Options options = stand_in_options();
  options.device = Device::cuda(0);
  Engine engine(options);
  const Kernel kernel = engine.prepare(problem);
  CHECK_COST(cost_of([&] { kernel.launch(some_rows()); }), free_but(3));
  CHECK_COST(cost_of([&] { engine.softmax(problem, some_rows()); }), free_but(3));
  const CurrentDevice device;
  CHECK_COST(cost_of([&] { kernel.launch(some_rows()); }), free_but(1));
  CHECK_COST(cost_of([&] { engine.softmax(problem, some_rows()); }), free_but(1));
}

TEST_CASE("while the generic kernel serves, a launch costs no more") {
  const CurrentDevice device;
  Options options = stand_in_options();
  options.on_miss = OnMiss::background;
  options.specialize_after = 1'000'000'000;
  Engine engine(options);
  CHECK_COST(cost_of([&] { engine.softmax(problem, some_rows()); }), free_but(1));
}

TEST_CASE("an engine with a limit allocates nothing and takes no lock either") {
  const CurrentDevice device;
  Options options = stand_in_options();
  options.max_kernels = 4;
  Engine engine(options);
  (void)engine.prepare(problem);
  const Cost cost = cost_of([&] { engine.softmax(problem, some_rows()); });
  CHECK(cost.allocations == 0);
  CHECK(cost.launches == repeats);
}
