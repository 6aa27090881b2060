// The functions of kernels::cpu: what device.cuh asks the machine for goes to the running cluster.
#include "host/cluster.hpp"

namespace jitsoftmax::kernels::cpu {

using host_test::Cluster;

Place place() { return Cluster::current().place(); }
void sync_block() { Cluster::current().sync_block(); }
unsigned long long shuffle_xor(unsigned long long bits, int lane_mask) {
  return Cluster::current().shuffle_xor(bits, lane_mask);
}
void shared_load(void* to, int offset, int bytes, int alignment) {
  Cluster::current().shared_load(to, offset, bytes, alignment);
}
void shared_store(int offset, const void* from, int bytes, int alignment) {
  Cluster::current().shared_store(offset, from, bytes, alignment);
}
void access_global(const void* pointer, int bytes) { Cluster::current().access_global(pointer, bytes); }

void cluster_arrive() { Cluster::current().arrive(); }
void cluster_wait() { Cluster::current().wait_for_cluster(); }
void send_to_block(int rank, int offset, const void* from, int bytes, int barrier_offset) {
  Cluster::current().send_to_block(rank, offset, from, bytes, barrier_offset);
}

void copy_barrier_init(int offset) { Cluster::current().copy_barrier_init(offset); }
void copy_barrier_expect(int offset, int bytes) { Cluster::current().copy_barrier_expect(offset, bytes); }
void copy_barrier_wait(int offset) { Cluster::current().copy_barrier_wait(offset); }
void copy_to_shared(int to, const void* from, int bytes, int barrier_offset) {
  Cluster::current().copy_to_shared(to, from, bytes, barrier_offset);
}

void sync_warp() { Cluster::current().sync_warp(); }
void start_copy(int to, const void* from, int bytes) { Cluster::current().start_copy(to, from, bytes); }
void close_copies() { Cluster::current().close_copies(); }
void wait_for_copies(int newest) { Cluster::current().wait_for_copies(newest); }

void wait_for_predecessor() { Cluster::current().wait_for_predecessor(); }
void post(unsigned long long* to, unsigned long long word) { Cluster::current().post(to, word); }
unsigned long long await_post(const unsigned long long* from, unsigned turn) {
  return Cluster::current().await_post(from, turn);
}

}  // namespace jitsoftmax::kernels::cpu
