// What the host and a kernel say to each other: the Config that a kernel is compiled for and the
// Arguments of one launch. Plain C++, included by the host's planning and by every kernel.
#pragma once

namespace jitsoftmax::kernels {

// How a block's threads cover rows. A kernel is a template over this value; the host spells it as
// the NVRTC name expression. A family reads the fields that it needs.
struct Config {
  int threads = 1;           // threads of a block that share a row: a power of two up to 32, or a multiple of 32
  int rows = 1;              // rows a block, of the strided families `vector` times as many; a block has
                             // threads * rows threads
  int cluster = 1;           // blocks that share a row, as a thread block cluster
  int vector = 1;            // elements of the input an access
  int elements = 1;          // elements that a thread holds at a time, a multiple of `vector`
  bool aligned = false;      // every row of input and output starts at a multiple of `vector` elements
  bool peeled = false;       // packets begin at aligned addresses, wherever the row does; else at its first element
  bool packed = false;       // elements are held as they are in memory, and their exponentials computed twice
  bool blocked = false;      // maxima over chunks of `elements` and compensated sums; else the literal recurrence
  bool persistent = false;   // the grid fills the device once and strides over the rows
  bool low_latency = false;  // rows are few: what counts is the time that one takes, not what all blocks move
  bool staggered = false;    // the tiles of a launch that begin at once read one after another (stagger.cuh)
  int pieces = 0;            // of what waits in shared memory: asynchronous copies that a block's part of a row arrives
                             // in; of a tile, groups of staged_columns columns of each thread
  int resident = 0;          // blocks that a multiprocessor is to hold at once, which bounds the registers;
                             // 0: the compiler's choice
  int shared = 0;            // bytes of shared memory a block, as planned by the host

  friend constexpr bool operator==(const Config&, const Config&) = default;
};

// One launch. Strides and `inner` are in elements; element j of row r is at
// (r / inner) * stride + j * inner + (r % inner).
struct Arguments {
  void* out = nullptr;
  const void* in = nullptr;
  long long rows = 0;
  long long cols = 0;
  long long out_stride = 0;
  long long in_stride = 0;
  long long inner = 1;
  float scale = 1;
  int zero_masked = 0;        // 1: a row of -inf only becomes zeros (log_softmax: -inf) instead of NaN
  int gang = 1;               // of the split family: blocks a row
  int programmatic = 0;       // 1: launched so that it may begin before the kernel that precedes it has ended
  int staggered = 0;          // of a staggered kernel: tiles that the device holds at once; 0: they read as they come
  void* workspace = nullptr;  // of the split family: gang_words() of 8 bytes for each gang of the grid
};

constexpr int warp_size = 32;

constexpr int power_of_two(int at_least) {
  int result = 1;
  while (result < at_least) result *= 2;
  return result;
}
constexpr int round_up(int bytes, int to) { return (bytes + to - 1) / to * to; }

// Whether blocks hold so much of their rows that they execute the two halves of a programmatic launch in any launch:
// it takes time where blocks are small, and gains some where they are not.
constexpr bool has_large_blocks(const Config& config, int element_bytes) {
  return config.threads * config.rows * config.elements * element_bytes >= 4096;
}

// Shared memory for merging partials (max, sum), two values of `accumulator_bytes` each: one of every
// warp, unless a row fits in a warp; then, where blocks share a row, what all of them send to each other, and the
// barrier that counts its arrival.
constexpr int barrier_bytes = 8;
// Partials that a block sends: those of its warps, or, where these are many, what they have merged.
constexpr int sent_partials(const Config& config) {
  constexpr int most = 8;
  const int warps = config.threads / warp_size;
  return warps <= most ? warps : 1;
}
constexpr int warp_partials(const Config& config) {
  return config.threads > warp_size && (config.cluster == 1 || sent_partials(config) == 1)
             ? config.rows * (config.threads / warp_size)
             : 0;
}
constexpr int cluster_partials(const Config& config) { return config.cluster * sent_partials(config); }
constexpr int cluster_partials_at(const Config& config, int accumulator_bytes) {
  return warp_partials(config) * 2 * accumulator_bytes;
}
constexpr int merge_barrier_at(const Config& config, int accumulator_bytes) {
  return cluster_partials_at(config, accumulator_bytes) + cluster_partials(config) * 2 * accumulator_bytes;
}
constexpr int merge_bytes(const Config& config, int accumulator_bytes) {
  return config.cluster > 1 ? merge_barrier_at(config, accumulator_bytes) + barrier_bytes
                            : warp_partials(config) * 2 * accumulator_bytes;
}

// The shared memory of a tile of rows side by side: a partial of each of its rows, and one more that is left
// alone, from every warp; then, where blocks share the tile, from every block, and the barrier that counts
// their arrival.
constexpr int tile_partials(const Config& config) { return config.rows * config.vector + 1; }
constexpr int tile_partials_bytes(const Config& config, int accumulator_bytes) {
  return tile_partials(config) * 2 * accumulator_bytes;
}
constexpr int tile_block_partials_at(const Config& config, int accumulator_bytes) {
  return config.threads * tile_partials_bytes(config, accumulator_bytes);
}
constexpr int tile_barrier_at(const Config& config, int accumulator_bytes) {
  return tile_block_partials_at(config, accumulator_bytes) +
         config.cluster * tile_partials_bytes(config, accumulator_bytes);
}
constexpr int tile_bytes(const Config& config, int accumulator_bytes) {
  if (config.threads * config.cluster == 1) return 0;
  return config.cluster > 1 ? tile_barrier_at(config, accumulator_bytes) + barrier_bytes
                            : tile_block_partials_at(config, accumulator_bytes);
}

// A staged tile: the same, then the columns of each warp that wait in shared memory, in pieces. They arrive by
// asynchronous copies of 16 bytes a lane.
constexpr int staged_columns = 8;
constexpr int copy_bytes = 16;
constexpr int tile_column_bytes(const Config& config, int element_bytes) {
  return config.rows * config.vector * element_bytes;
}
constexpr int tile_columns_at(const Config& config, int accumulator_bytes) {
  return round_up(tile_bytes(config, accumulator_bytes), copy_bytes);
}
constexpr int staged_tile_bytes(const Config& config, int accumulator_bytes, int element_bytes) {
  return tile_columns_at(config, accumulator_bytes) +
         config.threads * config.pieces * staged_columns * tile_column_bytes(config, element_bytes);
}

// What the blocks of a gang tell each other through: the number of the last turn, then, for two turns, the partial of
// every block, of whose bytes each word carries four. Partials are aligned to 16 bytes.
constexpr int gang_header_words = 2;
constexpr long long gang_words(int blocks, int accumulator_bytes) {
  return gang_header_words + 2LL * blocks * (2 * accumulator_bytes / 4);
}

// The shared memory of the staged family: slots for merging, one barrier a piece, then the packets,
// which take 16 bytes each.
constexpr int staged_packet_bytes = copy_bytes;
constexpr int staged_barriers_at(const Config& config, int accumulator_bytes) {
  return round_up(merge_bytes(config, accumulator_bytes), staged_packet_bytes);
}
constexpr int staged_packets_at(const Config& config, int accumulator_bytes) {
  return staged_barriers_at(config, accumulator_bytes) + round_up(config.pieces * barrier_bytes, staged_packet_bytes);
}
constexpr int staged_bytes(const Config& config, int accumulator_bytes) {
  return staged_packets_at(config, accumulator_bytes) +
         config.threads * (config.elements / config.vector) * staged_packet_bytes;
}

}  // namespace jitsoftmax::kernels
