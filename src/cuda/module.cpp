#include "cuda/module.hpp"

#include <algorithm>
#include <array>
#include <jitsoftmax/error.hpp>
#include <utility>

#include "cuda/capture.hpp"
#include "cuda/device.hpp"
#include "cuda/driver.hpp"

namespace jitsoftmax::cuda {
namespace {

CUlibrary load(const jit::Cubin& cubin) {
  // The driver reads PTX up to its zero, and a cubin by its own headers.
  if (cubin.payload.empty() || (cubin.kind == jit::PayloadKind::ptx && cubin.payload.back() != '\0'))
    throw Error(ErrorCode::internal, "the code of " + cubin.kernel + " is empty or not terminated.");
  const CaptureRelaxed relaxed(driver());
  CUlibrary library = nullptr;
  check(driver().LibraryLoadData(&library, cubin.payload.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "cuLibraryLoadData");
  return library;
}

// What a launch may take without asking; more is an attribute of the kernel, per device.
constexpr unsigned default_shared_bytes = 48 * 1024;
constexpr unsigned portable_cluster = 8;

// On every device that can run the code: a launch is to be ready in whichever context is current.
void allow(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice current) {
  const Arch arch = architecture(current);
  int count = 0;
  check(driver().DeviceGetCount(&count), "cuDeviceGetCount");
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUdevice device = 0;
    check(driver().DeviceGet(&device, ordinal), "cuDeviceGet");
    if (architecture(device) != arch) continue;
    const CUresult result = driver().KernelSetAttribute(attribute, value, kernel, device);
    // A device that is not the one in use may be out of reach; a launch there would say so.
    if (device == current) check(result, "cuKernelSetAttribute");
  }
}

CUlaunchAttribute of_clusters(const LaunchShape& shape) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {shape.cluster, 1, 1};
  return attribute;
}

CUlaunchConfig launch_config(const LaunchShape& shape) {
  CUlaunchConfig config{};
  config.gridDimX = shape.grid;
  config.gridDimY = 1;
  config.gridDimZ = 1;
  config.blockDimX = shape.block;
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.sharedMemBytes = shape.shared;
  return config;
}

// That the current device holds at once; 0 if it cannot say. That is no error here, since only the pace of launches
// depends on it: a device that holds none says so when one is launched.
int most_clusters(CUfunction function, const LaunchShape& shape) {
  CUlaunchAttribute clusters = of_clusters(shape);
  CUlaunchConfig config = launch_config(shape);
  config.gridDimX = shape.cluster;
  config.attrs = &clusters;
  config.numAttrs = 1;
  int count = 0;
  return driver().OccupancyMaxActiveClusters(&count, function, &config) == CUDA_SUCCESS ? count : 0;
}

}  // namespace

LoadedKernel::LoadedKernel(const jit::Cubin& cubin, const LaunchShape& shape) : LoadedKernel(load(cubin)) {
  const Driver& d = driver();
  const CaptureRelaxed relaxed(d);
  const CUdevice device = current_device();
  check(d.LibraryGetKernel(&kernel_, library_, cubin.kernel.c_str()), "cuLibraryGetKernel");

  // Loading is lazy: these two bring the code onto the device now instead of at the first launch.
  CUfunction loaded = nullptr;
  check(d.KernelGetFunction(&loaded, kernel_), "cuKernelGetFunction");
  if (d.FuncLoad != nullptr) check(d.FuncLoad(loaded), "cuFuncLoad");

  int static_shared = 0;
  check(d.FuncGetAttribute(&static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, loaded), "cuFuncGetAttribute");
  if (shape.shared + static_cast<unsigned>(static_shared) > default_shared_bytes)
    allow(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shape.shared), kernel_, device);
  if (shape.cluster > portable_cluster) allow(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, kernel_, device);

  int per_multiprocessor = 0;
  check(d.OccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, loaded, static_cast<int>(shape.block),
                                                    shape.shared),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  resident_blocks_ = std::max(1, per_multiprocessor * multiprocessors(device));
  resident_clusters_ = shape.cluster == 1 ? resident_blocks_ : most_clusters(loaded, shape);
}

LoadedKernel::~LoadedKernel() {
  const Driver* usable = library_ != nullptr ? driver_to_release_with() : nullptr;
  if (usable == nullptr) return;
  const CaptureRelaxed relaxed(*usable);
  usable->LibraryUnload(library_);  // one that a lost context took along is gone already
}

LoadedKernel::LoadedKernel(LoadedKernel&& other) noexcept
    : library_(std::exchange(other.library_, nullptr)),
      kernel_(std::exchange(other.kernel_, nullptr)),
      resident_blocks_(std::exchange(other.resident_blocks_, 0)),
      resident_clusters_(std::exchange(other.resident_clusters_, 0)) {}

LoadedKernel& LoadedKernel::operator=(LoadedKernel&& other) noexcept {
  // The old library leaves with `other`'s new value.
  std::swap(library_, other.library_);
  std::swap(kernel_, other.kernel_);
  std::swap(resident_blocks_, other.resident_blocks_);
  std::swap(resident_clusters_, other.resident_clusters_);
  return *this;
}

void launch(CUfunction function, const LaunchShape& shape, CUstream stream, void* arguments) {
  void* parameters[] = {arguments};
  if (shape.cluster == 1 && !shape.cooperative && !shape.programmatic) {
    check(
        driver().LaunchKernel(function, shape.grid, 1, 1, shape.block, 1, 1, shape.shared, stream, parameters, nullptr),
        "cuLaunchKernel");
    return;
  }
  std::array<CUlaunchAttribute, 4> attributes{};
  unsigned count = 0;
  if (shape.cluster != 1) {
    attributes[count++] = of_clusters(shape);
    if (shape.balanced) {
      attributes[count].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
      attributes[count++].value.clusterSchedulingPolicyPreference = CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
    }
  }
  if (shape.cooperative) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attributes[count++].value.cooperative = 1;
  }
  if (shape.programmatic) {
    attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attributes[count++].value.programmaticStreamSerializationAllowed = 1;
  }
  CUlaunchConfig config = launch_config(shape);
  config.hStream = stream;
  config.attrs = attributes.data();
  config.numAttrs = count;
  check(driver().LaunchKernelEx(&config, function, parameters, nullptr), "cuLaunchKernelEx");
}

}  // namespace jitsoftmax::cuda
