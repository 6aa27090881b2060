// The machine: every intrinsic, every line of PTX and every access to shared memory that the
// kernels use, under names of our own. Each has a CPU twin with the same meaning, so that the same
// kernels run under a debugger and the sanitizers on a machine without a GPU: there, whoever
// executes the kernels defines the functions of namespace `cpu`.
//
// Compiled with --device-as-default-execution-space: an unmarked function is a device function.
#pragma once

#include "config.cuh"
#include "types.cuh"

// Of loops over what a thread holds in registers: NVRTC leaves one of more than 32 turns a loop.
#if defined(__CUDACC__)
#define JITSOFTMAX_UNROLL _Pragma("unroll")
#else
#define JITSOFTMAX_UNROLL
#endif

#if defined(__CUDACC__)
#define JITSOFTMAX_KERNEL(config) __global__ void __launch_bounds__((config).threads*(config).rows, (config).resident)
#else
#define JITSOFTMAX_KERNEL(config) inline void
#endif

namespace jitsoftmax::kernels {

#if !defined(__CUDACC__)
namespace cpu {

struct Place {
  int thread;        // of the block
  long long block;   // of the grid
  long long blocks;  // in the grid
  int cluster_rank;  // of the block in its cluster
};
Place place();

// What the hardware would leave undefined is an error here: a thread that does not arrive, an access
// outside the block's shared memory, a misaligned one, a race, an access to global memory by a thread that has not
// waited for the kernel before.
void sync_block();
unsigned long long shuffle_xor(unsigned long long bits, int lane_mask);
void shared_load(void* to, int offset, int bytes, int alignment);
void shared_store(int offset, const void* from, int bytes, int alignment);
void access_global(const void* pointer, int bytes);
void copy_barrier_init(int offset);
void copy_barrier_expect(int offset, int bytes);
void copy_barrier_wait(int offset);
void copy_to_shared(int to, const void* from, int bytes, int barrier_offset);
void sync_warp();
void start_copy(int to, const void* from, int bytes);
void close_copies();
void wait_for_copies(int newest);
void cluster_arrive();
void cluster_wait();
void send_to_block(int rank, int offset, const void* from, int bytes, int barrier_offset);
void wait_for_predecessor();
void post(unsigned long long* to, unsigned long long word);
unsigned long long await_post(const unsigned long long* from, unsigned turn);

}  // namespace cpu
#endif

// ---- where am I ---------------------------------------------------------------------------------

inline int thread_index() {
#if defined(__CUDACC__)
  const int index = static_cast<int>(threadIdx.x);
  __builtin_assume(index >= 0);  // spares quotients their instructions for negative numbers
  return index;
#else
  return cpu::place().thread;
#endif
}

// Grids have one dimension.
inline long long block_index() {
#if defined(__CUDACC__)
  return static_cast<long long>(blockIdx.x);
#else
  return cpu::place().block;
#endif
}

inline long long grid_blocks() {
#if defined(__CUDACC__)
  return static_cast<long long>(gridDim.x);
#else
  return cpu::place().blocks;
#endif
}

// ---- accesses --------------------------------------------------------------------------------------

#if defined(__CUDACC__)
// What moves so many bytes in one access.
template <int bytes>
struct WordOf;
template <>
struct WordOf<16> {
  using type = uint4;
};
template <>
struct WordOf<8> {
  using type = uint2;
};
template <>
struct WordOf<4> {
  using type = unsigned;
};
template <>
struct WordOf<2> {
  using type = unsigned short;
};
template <class T>
using Word = typename WordOf<static_cast<int>(sizeof(T))>::type;
#endif

// ---- threads of a block talk to each other ------------------------------------------------------

inline void sync_block() {
#if defined(__CUDACC__)
  __syncthreads();
#else
  cpu::sync_block();
#endif
}

// What lanes of the warp have written, or copied and waited for, can be read by the others. Every lane of the warp
// calls.
inline void sync_warp() {
#if defined(__CUDACC__)
  __syncwarp();
#else
  cpu::sync_warp();
#endif
}

// Exchanges a value with the lane whose number differs in `lane_mask`. Every lane of the warp calls.
inline float shuffle_xor(float value, int lane_mask) {
#if defined(__CUDACC__)
  return __shfl_xor_sync(0xffffffffu, value, lane_mask);
#else
  const unsigned long long bits = __builtin_bit_cast(unsigned, value);
  return __builtin_bit_cast(float, static_cast<unsigned>(cpu::shuffle_xor(bits, lane_mask)));
#endif
}

inline double shuffle_xor(double value, int lane_mask) {
#if defined(__CUDACC__)
  return __shfl_xor_sync(0xffffffffu, value, lane_mask);
#else
  return __builtin_bit_cast(double, cpu::shuffle_xor(__builtin_bit_cast(unsigned long long, value), lane_mask));
#endif
}

#if defined(__CUDACC__)
// The block's one piece of shared memory; Config::shared bytes.
inline unsigned char* shared_arena() {
  extern __shared__ __align__(128) unsigned char bytes[];
  return bytes;
}
inline unsigned shared_address(int offset) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared_arena() + offset));
}
#endif

// An array in the block's shared memory, `offset` bytes from its start. There is one arena, laid
// out by each kernel; its size is Config::shared.
template <class T>
class SharedArray {
 public:
  explicit SharedArray(int offset) : offset_(offset) {}

  T load(int index) const {
    T value;
#if defined(__CUDACC__)
    *reinterpret_cast<Word<T>*>(&value) = *reinterpret_cast<const Word<T>*>(shared_arena() + at(index));
#else
    cpu::shared_load(&value, at(index), static_cast<int>(sizeof(T)), static_cast<int>(alignof(T)));
#endif
    return value;
  }

  void store(int index, const T& value) const {
#if defined(__CUDACC__)
    *reinterpret_cast<T*>(shared_arena() + at(index)) = value;
#else
    cpu::shared_store(at(index), &value, static_cast<int>(sizeof(T)), static_cast<int>(alignof(T)));
#endif
  }

  // Bytes from the start of the arena.
  int offset(int index) const { return at(index); }

 private:
  int at(int index) const { return offset_ + index * static_cast<int>(sizeof(T)); }
  int offset_;
};

// Counts the bytes that arrive asynchronously in the block's shared memory, once: a barrier of 8 bytes,
// `offset` bytes from the start of the arena.
class CopyBarrier {
 public:
  explicit CopyBarrier(int offset) : offset_(offset) {}

  // By one thread; publish_barriers() and a barrier of the block have to follow.
  void init() const {
#if defined(__CUDACC__)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(offset_)) : "memory");
#else
    cpu::copy_barrier_init(offset_);
#endif
  }
  // By one thread, before any of them is under way: how many.
  void expect(int bytes) const {
#if defined(__CUDACC__)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(offset_)), "r"(bytes)
                 : "memory");
#else
    cpu::copy_barrier_expect(offset_, bytes);
#endif
  }
  // By any thread: until all of them are there.
  void wait() const {
#if defined(__CUDACC__)
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
        "@!done bra again;\n"
        "}" ::"r"(shared_address(offset_))
        : "memory");
#else
    cpu::copy_barrier_wait(offset_);
#endif
  }
  // The same where other blocks of the cluster have sent them.
  void wait_for_blocks() const {
#if defined(__CUDACC__)
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], 0;\n"
        "@!done bra again;\n"
        "}" ::"r"(shared_address(offset_))
        : "memory");
#else
    cpu::copy_barrier_wait(offset_);
#endif
  }
  int offset() const { return offset_; }

 private:
  int offset_;
};

// The thread of a block of whole warps that initializes a barrier and says what it expects: any would do, but the
// former is an instruction of the whole warp, which compute-sanitizer takes for its last lane's.
constexpr int barrier_thread = warp_size - 1;

// Makes initialized barriers visible to asynchronous copies, and to the blocks of the cluster that then
// wait for this one to have started.
inline void publish_barriers() {
#if defined(__CUDACC__)
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// Starts a copy into shared memory, `to` bytes from the start of the arena. Addresses and size are
// multiples of 16 bytes.
inline void copy_to_shared(int to, const void* from, int bytes, const CopyBarrier& barrier) {
#if defined(__CUDACC__)
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(shared_address(barrier.offset()))
               : "memory");
#else
  cpu::copy_to_shared(to, from, bytes, barrier.offset());
#endif
}

// ---- copies that a thread waits for itself (sm_80 and newer) ---------------------------------------

// Starts a copy of copy_bytes into shared memory, `to` bytes from the start of the arena; both addresses are aligned to
// them. The line that it comes from is the first to leave the L2 cache.
inline void start_copy(int to, const void* from) {
#if defined(__CUDACC__)
  unsigned long long leaves_first;
  asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(leaves_first));
  // Of an address that is in part the same for the whole warp, NVRTC 13.0's assembler takes that part from a register
  // that it is not in. The index of a thread in a dimension that launches do not use is 0, which it does not know.
  const unsigned address = shared_address(to) ^ threadIdx.z;
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], %2, %3;" ::"r"(address),
               "l"(__cvta_generic_to_global(from)), "n"(copy_bytes), "l"(leaves_first)
               : "memory");
#else
  cpu::start_copy(to, from, copy_bytes);
#endif
}

// Those that this thread has started since it last called are a group.
inline void close_copies() {
#if defined(__CUDACC__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  cpu::close_copies();
#endif
}

// Until all groups of this thread but the `newest` ones are there, for this thread.
template <int newest>
void wait_for_copies() {
#if defined(__CUDACC__)
  asm volatile("cp.async.wait_group %0;" ::"n"(newest) : "memory");
#else
  cpu::wait_for_copies(newest);
#endif
}

// ---- blocks of a cluster talk to each other (sm_90 and newer) -------------------------------------

inline int cluster_rank() {
#if defined(__CUDACC__)
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
#else
  return cpu::place().cluster_rank;
#endif
}

// The two halves of a barrier of all threads of the cluster: who has waited knows that all blocks have
// started. It orders no accesses to memory. Those of a whole multiprocessor would have to end before, which
// takes longer than all else that blocks have to say to each other.
inline void cluster_arrive() {
#if defined(__CUDACC__)
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#else
  cpu::cluster_arrive();
#endif
}
inline void cluster_wait() {
#if defined(__CUDACC__)
  asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
#else
  cpu::cluster_wait();
#endif
}

// A place in the shared memory of block `rank`, `offset` bytes from the start of its arena, and the barrier there which
// has the same offset as `barrier`. Worked out apart from the sending, so that it can be ready when the value is.
class RemotePlace {
 public:
#if defined(__CUDACC__)
  RemotePlace(int rank, int offset, const CopyBarrier& barrier) {
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to_) : "r"(shared_address(offset)), "r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(counts_)
                 : "r"(shared_address(barrier.offset())), "r"(rank));
  }
#else
  RemotePlace(int rank, int offset, const CopyBarrier& barrier) : rank_(rank), offset_(offset), barrier_(barrier) {}
#endif

  // Writes a value of 8 or 16 bytes there some time later, when the barrier counts it. The block has to have started,
  // and must wait at its barrier before it ends.
  template <class T>
  void send(const T& value) const {
    static_assert(sizeof(T) == 8 || sizeof(T) == 16);
#if defined(__CUDACC__)
    struct Halves {
      unsigned long long at[sizeof(T) / 8];
    };
    const auto halves = __builtin_bit_cast(Halves, value);
    if constexpr (sizeof(T) == 8) {
      asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to_),
                   "l"(halves.at[0]), "r"(counts_)
                   : "memory");
    } else {
      asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(to_),
                   "l"(halves.at[0]), "l"(halves.at[1]), "r"(counts_)
                   : "memory");
    }
#else
    cpu::send_to_block(rank_, offset_, &value, static_cast<int>(sizeof(T)), barrier_.offset());
#endif
  }

 private:
#if defined(__CUDACC__)
  unsigned to_;
  unsigned counts_;
#else
  int rank_;
  int offset_;
  CopyBarrier barrier_;
#endif
};

// ---- time -------------------------------------------------------------------------------------------

// What memory delivers while a multiprocessor counts one cycle: as measured on an H200; where there is about twice the
// bandwidth, by data sheets.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200
constexpr int bytes_a_cycle = 4096;
#else
constexpr int bytes_a_cycle = 2048;
#endif

// Until so many cycles of the multiprocessor have passed.
inline void wait_cycles(int cycles) {
#if defined(__CUDACC__)
  asm volatile(
      "{\n"
      ".reg .pred early;\n"
      ".reg .s32 begin, passed;\n"
      "mov.u32 begin, %%clock;\n"
      "again: mov.u32 passed, %%clock;\n"
      "sub.s32 passed, passed, begin;\n"
      "setp.lt.s32 early, passed, %0;\n"
      "@early bra again;\n"
      "}" ::"r"(cycles));
#else
  static_cast<void>(cycles);
#endif
}

// ---- kernels of a stream run into each other (sm_90 and newer) --------------------------------------

// A programmatic launch lets a kernel begin while the one before it on the stream is still running. In any other launch
// the two halves have nothing to do, but are executed where that is no loss (`always`).

// Until the kernel before has ended and what it wrote can be seen: by every thread, before it touches global memory.
template <bool always = false>
void wait_for_predecessor(const Arguments& arguments) {
#if defined(__CUDACC__)
#if __CUDA_ARCH__ >= 900
  if (always || arguments.programmatic != 0) asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
#else
  static_cast<void>(arguments);  // a launch that is not programmatic begins when all of it has ended
  cpu::wait_for_predecessor();
#endif
}

// The kernel after may begin, once every block of this grid has called or ended. It promises nothing about memory.
template <bool always = false>
void let_successor_start(const Arguments& arguments) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 900
  if (always || arguments.programmatic != 0) asm volatile("griddepcontrol.launch_dependents;");
#else
  static_cast<void>(arguments);
#endif
}

// ---- blocks of a grid talk to each other -----------------------------------------------------------

// Two values for other blocks, in two words of global memory, each with the turn that it is of: who sees the turn has
// the value, so that nothing else has to be ordered. `to` is aligned to 16 bytes.
struct Pair {
  unsigned at[2];
};
inline void post(unsigned long long* to, const Pair& values, unsigned turn) {
  const unsigned long long high = static_cast<unsigned long long>(turn) << 32;
#if defined(__CUDACC__)
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)),
               "l"(high | values.at[0]), "l"(high | values.at[1])
               : "memory");
#else
  cpu::post(to, high | values.at[0]);
  cpu::post(to + 1, high | values.at[1]);
#endif
}

// The values, once the words are of that turn. Whoever posts them has to be on the device already, or to get there
// without this block's end.
inline Pair await_post(const unsigned long long* from, unsigned turn) {
  unsigned long long words[2];
#if defined(__CUDACC__)
  do {
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                 : "=l"(words[0]), "=l"(words[1])
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
  } while (static_cast<unsigned>(words[0] >> 32) != turn || static_cast<unsigned>(words[1] >> 32) != turn);
#else
  for (int i = 0; i < 2; ++i) words[i] = cpu::await_post(from + i, turn);
#endif
  return {{static_cast<unsigned>(words[0]), static_cast<unsigned>(words[1])}};
}

// ---- global memory ------------------------------------------------------------------------------

// One value at its natural alignment.
template <class T>
T load_one(const T* from) {
#if !defined(__CUDACC__)
  cpu::access_global(from, static_cast<int>(sizeof(T)));
#endif
  return *from;
}
template <class T>
void store_one(T* to, T value) {
#if !defined(__CUDACC__)
  cpu::access_global(to, static_cast<int>(sizeof(T)));
#endif
  *to = value;
}

// The line of a read that is the last one may be the first to leave the L2 cache.
enum class Lines { stay, leave_first };

// Moves a packet between registers and memory in one access of its whole size (at most 16 bytes,
// a power of two). `from` and `to` are aligned to it.
template <class T, int width, Lines lines = Lines::stay>
Packet<T, width> load_wide(const T* from) {
  static_assert(sizeof(Packet<T, width>) <= 16);
  Packet<T, width> packet;
#if defined(__CUDACC__)
  using Whole = Word<Packet<T, width>>;
  const auto* whole = reinterpret_cast<const Whole*>(from);
  *reinterpret_cast<Whole*>(&packet) = lines == Lines::stay ? *whole : __ldcs(whole);
#else
  cpu::access_global(from, static_cast<int>(sizeof(packet)));
  __builtin_memcpy(&packet, from, sizeof(packet));
#endif
  return packet;
}

template <class T, int width>
void store_wide(T* to, const Packet<T, width>& packet) {
  static_assert(sizeof(packet) <= 16);
#if defined(__CUDACC__)
  using Whole = Word<Packet<T, width>>;
  const Whole whole = *reinterpret_cast<const Whole*>(&packet);
  if constexpr (sizeof(packet) == 16) {
    __stwb(reinterpret_cast<Whole*>(to), whole);  // an assignment becomes four stores now and then
  } else {
    *reinterpret_cast<Whole*>(to) = whole;
  }
#else
  cpu::access_global(to, static_cast<int>(sizeof(packet)));
  __builtin_memcpy(to, &packet, sizeof(packet));
#endif
}

// Makes the compiler forget what it has computed from the packet, so that it computes it again
// instead of keeping it in registers. So does the assembler, which cannot know that the index of a thread in a
// dimension that launches do not use is 0.
template <class T, int width>
void forget_derived(Packet<T, width>& packet) {
#if defined(__CUDACC__)
  if constexpr (sizeof(packet) % 4 == 0) {
    auto* words = reinterpret_cast<unsigned*>(&packet);
    for (unsigned i = 0; i < sizeof(packet) / 4; ++i) {
      asm volatile("xor.b32 %0, %0, %1;" : "+r"(words[i]) : "r"(threadIdx.z));
    }
  }
#else
  static_cast<void>(packet);
#endif
}

// The same of a number, of the compiler only.
inline void forget_derived(long long& value) {
#if defined(__CUDACC__)
  asm volatile("" : "+l"(value));
#else
  static_cast<void>(value);
#endif
}

// Makes the compiler read again what it has read from memory before.
inline void forget_loaded() {
#if defined(__CUDACC__)
  asm volatile("" ::: "memory");
#endif
}

// `bytes` is a power of two.
inline int address_modulo(const void* pointer, int bytes) {
  return static_cast<int>(reinterpret_cast<unsigned long long>(pointer) & static_cast<unsigned long long>(bytes - 1));
}
inline bool is_aligned(const void* pointer, int bytes) { return address_modulo(pointer, bytes) == 0; }

// ---- arithmetic ---------------------------------------------------------------------------------
// The compiler contracts nothing (--fmad=false; -ffp-contract=off on the CPU): a product is rounded
// before it is subtracted from.

template <class Real>
constexpr Real infinity() {
  return static_cast<Real>(__builtin_bit_cast(float, 0x7f800000u));
}
template <class Real>
constexpr Real not_a_number() {
  return static_cast<Real>(__builtin_bit_cast(float, 0x7fffffffu));
}

// Drops NaN: sums carry it to the result.
inline float maximum(float a, float b) {
#if defined(__CUDACC__)
  return fmaxf(a, b);
#else
  return __builtin_fmaxf(a, b);
#endif
}
inline double maximum(double a, double b) {
#if defined(__CUDACC__)
  return fmax(a, b);
#else
  return __builtin_fmax(a, b);
#endif
}

// The largest value of the warp's 32 lanes; every one of them calls and has it. NaN may count as larger or
// smaller than any number.
inline float warp_maximum(float x) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  // As integers of the same order: the reduction is a single instruction.
  const int bits = __float_as_int(x);
  const int largest = __reduce_max_sync(0xffffffffu, bits ^ ((bits >> 31) & 0x7fffffff));
  return __int_as_float(largest ^ ((largest >> 31) & 0x7fffffff));
#else
  for (int mask = warp_size / 2; mask > 0; mask /= 2) x = maximum(x, shuffle_xor(x, mask));
  return x;
#endif
}
inline double warp_maximum(double x) {
  for (int mask = warp_size / 2; mask > 0; mask /= 2) x = maximum(x, shuffle_xor(x, mask));
  return x;
}

inline float fused_multiply_add(float a, float b, float c) {
#if defined(__CUDACC__)
  return fmaf(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}

// The sum of what the warp's 32 lanes have, numbers from 0 to 2^41; every one of them calls and has it. Each is rounded
// to eighths, which makes an error of at most 2. `valid`: whether all of them are such numbers; if not, the sum is
// none.
inline float warp_sum(float x, bool& valid) {
  // As integers: then a reduction is a single instruction, instead of five shuffles and additions. Adding 1.5 * 2^23
  // rounds to one, in the lower bits: x / 2^19, and eight times what that leaves of x.
  constexpr float shifter = 12582912;
  const float high = fused_multiply_add(x, 0x1p-19f, shifter);
  const float low = fused_multiply_add(fused_multiply_add(shifter - high, 0x1p19f, x), 8, shifter);
  const bool lane_valid = x >= 0 && x <= 0x1p41f;
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  unsigned highs = __reduce_add_sync(0xffffffffu, __float_as_uint(high));
  unsigned lows = __reduce_add_sync(0xffffffffu, __float_as_uint(low));
  valid = __all_sync(0xffffffffu, lane_valid) != 0;
#else
  const auto sum_of_lanes = [](unsigned value) {
    for (int mask = warp_size / 2; mask > 0; mask /= 2) {
      value += __builtin_bit_cast(unsigned, shuffle_xor(__builtin_bit_cast(float, value), mask));
    }
    return value;
  };
  unsigned highs = sum_of_lanes(__builtin_bit_cast(unsigned, high));
  unsigned lows = sum_of_lanes(__builtin_bit_cast(unsigned, low));
  valid = sum_of_lanes(lane_valid ? 1 : 0) == warp_size;
#endif
  highs -= warp_size * __builtin_bit_cast(unsigned, shifter);
  lows -= warp_size * __builtin_bit_cast(unsigned, shifter);
  return fused_multiply_add(static_cast<float>(static_cast<int>(highs)), 0x1p19f,
                            static_cast<float>(static_cast<int>(lows)) * 0.125f);
}

// Within 2 ulp, subnormal results included.
inline float exponential(float x) {
#if defined(__CUDACC__)
  return expf(x);
#else
  return __builtin_expf(x);
#endif
}
// For x <= 0, within 1e-14 of it; subnormal results included. Less than the library's, which treats more cases.
inline double exponential(double x) {
#if defined(__CUDACC__)
  // x = n ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^52 rounds to an integer, in the lower bits.
  constexpr double shifter = 6755399441055744.0;
  const double shifted = fma(x, 1.4426950408889634, shifter);
  const int n = __double2loint(shifted);
  const double whole = shifted - shifter;
  const double r = fma(whole, -2.3190468138462996e-17, fma(whole, -0.6931471805599453, x));
  // Taylor's series: the first term left out is r^12 / 12!, at most 7e-15.
  constexpr double terms[] = {2.505210838544172e-8,
                              2.755731922398589e-7,
                              2.755731922398589e-6,
                              2.48015873015873e-5,
                              1.984126984126984e-4,
                              1.388888888888889e-3,
                              8.333333333333333e-3,
                              4.1666666666666664e-2,
                              1.6666666666666666e-1,
                              0.5,
                              1.0,
                              1.0};
  double sum = terms[0];
  for (int i = 1; i < 12; ++i) sum = fma(sum, r, terms[i]);
  // In two steps, since 2^n may be too small a number where the result is not.
  const int half = n / 2;
  const double result = sum * __hiloint2double((half + 1023) << 20, 0) * __hiloint2double((n - half + 1023) << 20, 0);
  return x < -746.0 ? 0.0 : result;
#else
  return __builtin_exp(x);
#endif
}

// exp(x) * 2^exponent, where that is less than 2^128, within 5e-6 of it (of |x| < 104, where the result times
// 2^-exponent is a number of f32): the product with log2(e) is rounded once. Results below 2^-126 become 0.
template <int exponent>
float scaled_exponential(float x) {
  constexpr float log2_e = 1.44269504f;
#if defined(__CUDACC__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(fused_multiply_add(x, log2_e, static_cast<float>(exponent))));
  return result;
#else
  return __builtin_exp2f(fused_multiply_add(x, log2_e, static_cast<float>(exponent)));
#endif
}

// 1 / x for a sum of exponentials: at least 1, or 0 (infinity or NaN) or NaN (NaN). Division proper
// treats more cases and calls a function for them, which costs a stack frame.
inline float reciprocal(float x) {
#if defined(__CUDACC__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1 / x;
#endif
}
inline double reciprocal(double x) {
#if defined(__CUDACC__)
  double result;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(result) : "d"(x));
  // Newton's iteration doubles the 20 bits twice.
  for (int i = 0; i < 2; ++i) result = fma(result, fma(-x, result, 1.0), result);
  return result;
#else
  return 1 / x;
#endif
}

inline float logarithm(float x) {
#if defined(__CUDACC__)
  return logf(x);
#else
  return __builtin_logf(x);
#endif
}
inline double logarithm(double x) {
#if defined(__CUDACC__)
  return log(x);
#else
  return __builtin_log(x);
#endif
}

// ---- element types ------------------------------------------------------------------------------

inline float widen(float x) { return x; }
inline double widen(double x) { return x; }
inline float widen(bf16 x) { return __builtin_bit_cast(float, static_cast<unsigned>(x.bits) << 16); }
inline float widen(f16 x) {
#if defined(__CUDACC__)
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
#else
  return portable::widen(x);
#endif
}

inline float larger_of(float a, float b) { return maximum(a, b); }
inline double larger_of(double a, double b) { return maximum(a, b); }
template <class T>
T larger_of(T a, T b) {
  return widen(b) > widen(a) || widen(a) != widen(a) ? b : a;
}

// Two 16-bit elements share a word, which is taken apart as a whole.
template <int width, class T>
void widen_packet(accumulator<T>* x, const Packet<T, width>& packet) {
#if defined(__CUDACC__)
  if constexpr (is_bf16<T> && width % 2 == 0) {
    const auto* pairs = reinterpret_cast<const unsigned*>(&packet);
    for (int i = 0; i < width / 2; ++i) {
      x[2 * i] = __builtin_bit_cast(float, pairs[i] << 16);
      x[2 * i + 1] = __builtin_bit_cast(float, pairs[i] & 0xffff0000u);
    }
  } else
#endif
  {
    for (int i = 0; i < width; ++i) x[i] = widen(packet.at[i]);
  }
}

template <class T, int width>
struct Halves {
  Packet<T, width / 2> at[2];
};
template <class T, int width>
Halves<T, width> halves_of(const Packet<T, width>& packet) {
#if defined(__CUDACC__)
  return *reinterpret_cast<const Halves<T, width>*>(&packet);
#else
  return __builtin_bit_cast(Halves<T, width>, packet);
#endif
}

// Element by element the larger one of two packets; drops NaN. Two 16-bit elements take one instruction.
template <class T, int width>
Packet<T, width> maximum(const Packet<T, width>& a, const Packet<T, width>& b) {
  Packet<T, width> larger;
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  if constexpr (sizeof(T) == 2 && width % 2 == 0) {
    const auto* of_a = reinterpret_cast<const unsigned*>(&a);
    const auto* of_b = reinterpret_cast<const unsigned*>(&b);
    auto* pairs = reinterpret_cast<unsigned*>(&larger);
    for (int i = 0; i < width / 2; ++i) {
      if constexpr (is_bf16<T>) {
        asm("max.bf16x2 %0, %1, %2;" : "=r"(pairs[i]) : "r"(of_a[i]), "r"(of_b[i]));
      } else {
        asm("max.f16x2 %0, %1, %2;" : "=r"(pairs[i]) : "r"(of_a[i]), "r"(of_b[i]));
      }
    }
  } else
#endif
  {
    for (int i = 0; i < width; ++i) larger.at[i] = larger_of(a.at[i], b.at[i]);
  }
  return larger;
}

// Two 16-bit elements take one instruction.
template <class T, int width>
Packet<T, width> negated(Packet<T, width> packet) {
#if defined(__CUDACC__)
  if constexpr (sizeof(T) == 2 && width % 2 == 0) {
    auto* pairs = reinterpret_cast<unsigned*>(&packet);
    for (int i = 0; i < width / 2; ++i) pairs[i] ^= 0x80008000u;
  } else
#endif
  {
    for (T& element : packet.at) element = negated(element);
  }
  return packet;
}

// Rounds to nearest, ties to even.
template <class T>
T narrow(accumulator<T> x);
template <>
inline float narrow<float>(float x) {
  return x;
}
template <>
inline double narrow<double>(double x) {
  return x;
}
template <>
inline f16 narrow<f16>(float x) {
#if defined(__CUDACC__)
  f16 result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
#else
  return portable::narrow_f16(x);
#endif
}
template <>
inline bf16 narrow<bf16>(float x) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  bf16 result;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
  return result;
#else
  return portable::narrow_bf16(x);
#endif
}

// Two 16-bit results take one instruction.
template <class Out, int width, class Real>
Packet<Out, width> narrow_packet(const Real* x) {
  Packet<Out, width> packet;
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  if constexpr (sizeof(Out) == 2 && width % 2 == 0) {
    auto* pairs = reinterpret_cast<unsigned*>(&packet);
    for (int i = 0; i < width / 2; ++i) {
      if constexpr (is_bf16<Out>) {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pairs[i]) : "f"(x[2 * i + 1]), "f"(x[2 * i]));
      } else {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pairs[i]) : "f"(x[2 * i + 1]), "f"(x[2 * i]));
      }
    }
  } else
#endif
  {
    for (int i = 0; i < width; ++i) packet.at[i] = narrow<Out>(x[i]);
  }
  return packet;
}

}  // namespace jitsoftmax::kernels
