#include "host/fiber.hpp"

#include <boost/context/protected_fixedsize_stack.hpp>
#include <memory>
#include <utility>

#if defined(JITSOFTMAX_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>

// Frames on the heap, as later compilers make them by default, do not outlive a fiber's last switch, after which it
// still returns.
extern "C" const char* __asan_default_options() { return "detect_stack_use_after_return=0"; }
#endif

namespace jitsoftmax::host_test {
namespace {

constexpr std::size_t stack_bytes = 128 * 1024;  // the address sanitizer pads every array of a frame

// Allocates a stack with a guard page and tells where it is.
struct Stack {
  StackBounds& bounds;
  boost::context::protected_fixedsize_stack pages{stack_bytes};

  boost::context::stack_context allocate() {
    const auto stack = pages.allocate();
    bounds.bottom = static_cast<const char*>(stack.sp) - stack.size;
    bounds.size = stack.size;
    return stack;
  }
  void deallocate(boost::context::stack_context& stack) { pages.deallocate(stack); }
};

// Around every switch. `kept` is the sanitizer's note on the stack that is left; null if it is left
// for good.
void before_switch([[maybe_unused]] void** kept, [[maybe_unused]] const StackBounds& to) {
#if defined(JITSOFTMAX_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(kept, to.bottom, to.size);
#endif
}
void after_switch([[maybe_unused]] void* kept, [[maybe_unused]] StackBounds* from) {
#if defined(JITSOFTMAX_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(kept, from == nullptr ? nullptr : &from->bottom,
                                  from == nullptr ? nullptr : &from->size);
#endif
}

}  // namespace

Fiber::Fiber() {
  inside_ = boost::context::fiber(std::allocator_arg, Stack{inside_stack_}, [this](boost::context::fiber&& outside) {
    outside_ = std::move(outside);
    after_switch(nullptr, &outside_stack_);
    while (body_ != nullptr) {
      (*body_)();
      suspend();
    }
    before_switch(nullptr, outside_stack_);
    return std::move(outside_);
  });
}

Fiber::~Fiber() {
  body_ = nullptr;
  resume();
}

void Fiber::resume() {
  void* kept = nullptr;
  before_switch(&kept, inside_stack_);
  inside_ = std::move(inside_).resume();
  after_switch(kept, nullptr);
}

void Fiber::suspend() {
  void* kept = nullptr;
  before_switch(&kept, outside_stack_);
  outside_ = std::move(outside_).resume();
  after_switch(kept, &outside_stack_);
}

}  // namespace jitsoftmax::host_test
