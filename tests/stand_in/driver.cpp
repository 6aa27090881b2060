#include "stand_in/driver.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "cuda/driver.hpp"

using jitsoftmax::cuda::Driver;
namespace stand_in = jitsoftmax::stand_in;

// Handles point to these. None is ever freed, so that a stale handle is seen and not a crash.
struct CUctx_st {
  int device = 0;
  bool primary = false;
  bool alive = true;
};

struct CUlib_st {
  bool alive = true;
};

struct CUkern_st {
  std::string name;
  CUlib_st* library = nullptr;
};

struct CUstream_st {
  CUcontext context = nullptr;
  unsigned flags = CU_STREAM_DEFAULT;
  std::uint64_t id = 0;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id captured_by;
  std::vector<stand_in::Launch> recorded;
  std::vector<const CUkern_st*> recorded_kernels;
  bool held = false;
  std::uint64_t issued = 0;
  std::uint64_t done = 0;
  std::vector<const CUkern_st*> running;
};

struct CUgraph_st {
  std::vector<stand_in::Launch> launches;
  std::vector<const CUkern_st*> kernels;
};

struct CUgraphExec_st {
  CUgraph_st graph;
  bool alive = true;
};

struct CUevent_st {
  CUstream stream = nullptr;
  std::uint64_t at = 0;
};

namespace {

template <class Handle>
using Objects = std::vector<std::unique_ptr<Handle>>;

struct State {
  std::mutex mutex;
  Objects<CUctx_st> contexts;
  Objects<CUlib_st> libraries;
  Objects<CUkern_st> kernels;
  Objects<CUstream_st> streams;
  Objects<CUgraph_st> graphs;
  Objects<CUgraphExec_st> execs;
  Objects<CUevent_st> events;
  CUctx_st* primary[stand_in::devices] = {};
  CUstream_st legacy;
  std::uint64_t stream_ids = 10;
  std::vector<stand_in::Launch> launches;
  std::vector<std::string> violations;
  int loads = 0;
  int loads_to_fail = 0;
  CUresult load_failure = CUDA_SUCCESS;
};

// Never destroyed: static engines of a test may call in later.
State& state() {
  static State& instance = *std::make_unique<State>().release();
  return instance;
}

std::atomic<int> compute_capability{9};
std::atomic<bool> knows_clusters = true;
std::atomic<bool> observed{true};
std::atomic<bool> launches_held{false};
std::atomic<int> launches_entered{0};
thread_local std::vector<CUcontext> current;  // a stack
thread_local std::uint64_t launched = 0;
thread_local std::uint64_t context_calls_made = 0;
thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

template <class Handle>
Handle* add(Objects<Handle>& objects, Handle object = {}) {
  objects.push_back(std::make_unique<Handle>(std::move(object)));
  return objects.back().get();
}

template <class Handle>
bool is_one_of(const Objects<Handle>& objects, const Handle* handle) {
  return std::ranges::any_of(objects, [&](const auto& object) { return object.get() == handle; });
}

CUresult context_error() {
  if (current.empty() || current.back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return current.back()->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUstream_st& stream_of(CUstream handle) {
  const bool is_default = handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
  return is_default ? state().legacy : *handle;
}

bool captures(const CUstream_st& stream) { return stream.status != CU_STREAM_CAPTURE_STATUS_NONE; }

// A blocking stream's capture forbids the legacy stream.
bool legacy_is_forbidden() {
  return std::ranges::any_of(state().streams, [](const auto& stream) {
    return captures(*stream) && (stream->flags & CU_STREAM_NON_BLOCKING) == 0;
  });
}

// A call that may synchronize or allocate: what it does to captures that are under way.
CUresult unsafe_call() {
  CUresult result = CUDA_SUCCESS;
  if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return result;
  for (const auto& stream : state().streams) {
    if (!captures(*stream) || stream->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
    const bool own = stream->captured_by == std::this_thread::get_id();
    const bool strict = stream->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (!own && !strict) continue;
    stream->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult error_name(CUresult result, const char** name) {
  *name = result == CUDA_ERROR_INVALID_VALUE       ? "CUDA_ERROR_INVALID_VALUE"
          : result == CUDA_ERROR_INVALID_IMAGE     ? "CUDA_ERROR_INVALID_IMAGE"
          : result == CUDA_ERROR_NO_BINARY_FOR_GPU ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
                                                   : "CUDA_ERROR_OF_THE_STAND_IN";
  return CUDA_SUCCESS;
}

CUresult error_string(CUresult, const char** text) {
  *text = "said by the stand-in driver";
  return CUDA_SUCCESS;
}

CUresult driver_get_version(int* version) {
  *version = 12040;
  return CUDA_SUCCESS;
}

CUresult device_get_count(int* count) {
  *count = stand_in::devices;
  return CUDA_SUCCESS;
}

CUresult device_get(CUdevice* device, int ordinal) {
  if (ordinal < 0 || ordinal >= stand_in::devices) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult device_get_name(char* name, int size, CUdevice) {
  std::strncpy(name, "stand-in", static_cast<std::size_t>(size));
  return CUDA_SUCCESS;
}

CUresult device_get_attribute(int* value, CUdevice_attribute which, CUdevice) {
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = compute_capability;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = 0;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      *value = 65536;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 227 * 1024;
      break;
    default:
      *value = 1 << 20;
  }
  return CUDA_SUCCESS;
}

CUresult primary_retain(CUcontext* context, CUdevice device) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.primary[device] == nullptr) s.primary[device] = add(s.contexts, {.device = device, .primary = true});
  *context = s.primary[device];
  return CUDA_SUCCESS;
}

CUresult primary_release(CUdevice) { return CUDA_SUCCESS; }

CUresult ctx_get_current(CUcontext* context) {
  ++context_calls_made;
  *context = current.empty() ? nullptr : current.back();
  return CUDA_SUCCESS;
}

CUresult ctx_push(CUcontext context) {
  ++context_calls_made;
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  current.push_back(context);
  return CUDA_SUCCESS;
}

CUresult ctx_pop(CUcontext* context) {
  ++context_calls_made;
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = current.back();
  current.pop_back();
  return CUDA_SUCCESS;
}

CUresult ctx_get_device(CUdevice* device) {
  ++context_calls_made;
  if (const CUresult error = context_error()) return error;
  *device = current.back()->device;
  return CUDA_SUCCESS;
}

CUresult ctx_synchronize() {
  const std::lock_guard lock(state().mutex);
  if (const CUresult error = context_error()) return error;
  return unsafe_call();
}

CUresult library_load(CUlibrary* library, const void*, CUjit_option*, void**, unsigned, CUlibraryOption*, void**,
                      unsigned) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CUresult error = unsafe_call()) return error;
  ++s.loads;
  if (s.loads_to_fail > 0) {
    --s.loads_to_fail;
    return s.load_failure;
  }
  *library = add(s.libraries);
  return CUDA_SUCCESS;
}

CUresult library_unload(CUlibrary library) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CUresult error = unsafe_call()) return error;
  if (!is_one_of(s.libraries, library) || !library->alive) {
    s.violations.emplace_back("a library was unloaded twice");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const auto of_library = [&](const CUkern_st* kernel) { return kernel->library == library; };
  bool running = std::ranges::any_of(s.legacy.running, of_library);
  for (const auto& stream : s.streams) running = running || std::ranges::any_of(stream->running, of_library);
  if (running) s.violations.emplace_back("code was unloaded while it ran");
  for (const auto& exec : s.execs)
    if (exec->alive && std::ranges::any_of(exec->graph.kernels, of_library))
      s.violations.emplace_back("code was unloaded that a graph holds");
  library->alive = false;
  return CUDA_SUCCESS;
}

CUresult library_get_kernel(CUkernel* kernel, CUlibrary library, const char* name) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  *kernel = add(s.kernels, {.name = name, .library = library});
  return CUDA_SUCCESS;
}

CUresult kernel_get_function(CUfunction* function, CUkernel kernel) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult error = context_error()) return error;
  if (const CUresult error = unsafe_call()) return error;
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

CUresult func_load(CUfunction) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult error = context_error()) return error;
  return unsafe_call();
}

CUresult kernel_set_attribute(CUfunction_attribute, int, CUkernel, CUdevice) { return CUDA_SUCCESS; }

CUresult func_get_attribute(int* value, CUfunction_attribute, CUfunction) {
  *value = 0;
  return CUDA_SUCCESS;
}

CUresult occupancy(int* blocks, CUfunction, int, std::size_t) {
  *blocks = 2;
  return CUDA_SUCCESS;
}

// Fewer than there are blocks for: they have to be close to each other.
CUresult active_clusters(int* clusters, CUfunction, const CUlaunchConfig* config) {
  if (!knows_clusters) return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    *clusters = static_cast<int>(stand_in::active_blocks_in_clusters / config->attrs[i].value.clusterDim.x);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult exchange_mode(CUstreamCaptureMode* mode) {
  std::swap(*mode, thread_mode);
  return CUDA_SUCCESS;
}

CUresult stream_is_capturing(CUstream handle, CUstreamCaptureStatus* status) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult error = context_error()) return error;
  const CUstream_st& stream = stream_of(handle);
  if (&stream == &state().legacy && legacy_is_forbidden()) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = stream.status;
  return CUDA_SUCCESS;
}

// With the lock.
CUresult check_alive(const CUkern_st* kernel) {
  if (!is_one_of(state().kernels, kernel) || !kernel->library->alive) {
    state().violations.emplace_back("a kernel was launched whose code is gone");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  return CUDA_SUCCESS;
}

void run(CUstream_st& stream, const CUkern_st* kernel) {
  ++stream.issued;
  if (stream.held) {
    stream.running.push_back(kernel);
  } else {
    stream.done = stream.issued;
  }
}

CUresult read_attributes(const CUlaunchConfig& config, stand_in::Launch& launch) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        launch.cluster = attribute.value.clusterDim.x;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        launch.balanced =
            attribute.value.clusterSchedulingPolicyPreference == CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING;
        break;
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        launch.cooperative = attribute.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        launch.programmatic = attribute.value.programmaticStreamSerializationAllowed != 0;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  return CUDA_SUCCESS;
}

CUresult launch_observed(const CUkern_st* kernel, const CUlaunchConfig& config, void** parameters, bool plain) {
  const CUstream handle = config.hStream;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CUresult error = context_error()) return error;
  CUstream_st& stream = stream_of(handle);
  if (&stream == &s.legacy && legacy_is_forbidden()) {
    for (const auto& other : s.streams)
      if (captures(*other)) other->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (&stream != &s.legacy && stream.context != current.back()) return CUDA_ERROR_INVALID_HANDLE;
  if (stream.status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (const CUresult error = check_alive(kernel)) return error;
  stand_in::Launch launch{.kernel = kernel->name,
                          .context = current.back(),
                          .stream = handle,
                          .grid_x = config.gridDimX,
                          .arguments = {},
                          .plain = plain};
  if (const CUresult error = read_attributes(config, launch)) return error;
  std::memcpy(&launch.arguments, parameters[0], sizeof launch.arguments);
  if (captures(stream)) {
    stream.recorded.push_back(launch);
    stream.recorded_kernels.push_back(kernel);
    return CUDA_SUCCESS;
  }
  run(stream, kernel);
  s.launches.push_back(std::move(launch));
  return CUDA_SUCCESS;
}

CUresult launch(CUfunction function, const CUlaunchConfig& config, void** parameters, bool plain) {
  ++launched;
  if (!observed.load(std::memory_order_relaxed)) return CUDA_SUCCESS;
  ++launches_entered;
  while (launches_held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  --launches_entered;
  return launch_observed(reinterpret_cast<const CUkern_st*>(function), config, parameters, plain);
}

CUresult launch_kernel(CUfunction function, unsigned x, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                       CUstream stream, void** parameters, void**) {
  CUlaunchConfig config{};
  config.gridDimX = x;
  config.hStream = stream;
  return launch(function, config, parameters, true);
}

CUresult launch_kernel_ex(const CUlaunchConfig* config, CUfunction function, void** parameters, void**) {
  return launch(function, *config, parameters, false);
}

CUresult stream_create(CUstream* stream, unsigned flags) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (const CUresult error = context_error()) return error;
  *stream = add(s.streams);
  (*stream)->context = current.back();
  (*stream)->flags = flags;
  (*stream)->id = ++s.stream_ids;
  return CUDA_SUCCESS;
}

CUresult stream_destroy(CUstream) { return CUDA_SUCCESS; }

CUresult stream_synchronize(CUstream) {
  const std::lock_guard lock(state().mutex);
  return unsafe_call();
}

CUresult stream_get_id(CUstream handle, unsigned long long* id) {
  const std::lock_guard lock(state().mutex);
  *id = stream_of(handle).id;
  return CUDA_SUCCESS;
}

CUresult stream_begin_capture(CUstream handle, CUstreamCaptureMode mode) {
  const std::lock_guard lock(state().mutex);
  CUstream_st& stream = stream_of(handle);
  if (&stream == &state().legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  stream.status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  stream.mode = mode;
  stream.captured_by = std::this_thread::get_id();
  stream.recorded.clear();
  stream.recorded_kernels.clear();
  return CUDA_SUCCESS;
}

CUresult stream_end_capture(CUstream handle, CUgraph* graph) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  CUstream_st& stream = stream_of(handle);
  *graph = nullptr;
  const CUstreamCaptureStatus status = std::exchange(stream.status, CU_STREAM_CAPTURE_STATUS_NONE);
  if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *graph = add(s.graphs, {.launches = stream.recorded, .kernels = stream.recorded_kernels});
  return CUDA_SUCCESS;
}

CUresult graph_instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  const std::lock_guard lock(state().mutex);
  *exec = add(state().execs, {.graph = *graph});
  return CUDA_SUCCESS;
}

CUresult graph_launch(CUgraphExec exec, CUstream handle) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  CUstream_st& stream = stream_of(handle);
  for (std::size_t i = 0; i < exec->graph.kernels.size(); ++i) {
    if (const CUresult error = check_alive(exec->graph.kernels[i])) return error;
    run(stream, exec->graph.kernels[i]);
    s.launches.push_back(exec->graph.launches[i]);
  }
  return CUDA_SUCCESS;
}

CUresult graph_exec_destroy(CUgraphExec exec) {
  const std::lock_guard lock(state().mutex);
  exec->alive = false;
  return CUDA_SUCCESS;
}

CUresult graph_destroy(CUgraph) { return CUDA_SUCCESS; }

CUresult event_create(CUevent* event, unsigned) {
  const std::lock_guard lock(state().mutex);
  *event = add(state().events);
  return CUDA_SUCCESS;
}

CUresult event_destroy(CUevent) { return CUDA_SUCCESS; }

CUresult event_record(CUevent event, CUstream handle) {
  const std::lock_guard lock(state().mutex);
  CUstream_st& stream = stream_of(handle);
  event->stream = &stream;
  event->at = stream.issued;
  return CUDA_SUCCESS;
}

CUresult event_query(CUevent event) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult error = unsafe_call()) return error;
  return event->stream != nullptr && event->stream->done < event->at ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult event_synchronize(CUevent) { return CUDA_SUCCESS; }

CUresult event_elapsed(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 1;
  return CUDA_SUCCESS;
}

// Addresses that nothing reads.
CUresult mem_alloc(CUdeviceptr* address, std::size_t bytes) {
  static std::atomic<CUdeviceptr> next{CUdeviceptr{1} << 44};
  *address = next.fetch_add((bytes + 255) / 256 * 256);
  return CUDA_SUCCESS;
}
CUresult memset_d8_async(CUdeviceptr, unsigned char, std::size_t, CUstream) { return CUDA_SUCCESS; }
// No address is given twice, so that it is a number as well.
CUresult pointer_get_attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  if (attribute != CU_POINTER_ATTRIBUTE_BUFFER_ID) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<unsigned long long*>(value) = address;
  return CUDA_SUCCESS;
}
CUresult ctx_get_id(CUcontext context, unsigned long long* id) {
  if (context == nullptr && !current.empty()) context = current.back();
  *id = reinterpret_cast<std::uintptr_t>(context);
  return context == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}
CUresult mem_free(CUdeviceptr) { return CUDA_SUCCESS; }
CUresult mem_get_info(std::size_t* free, std::size_t* total) {
  *free = *total = 0;
  return CUDA_SUCCESS;
}
CUresult memcpy_htod(CUdeviceptr, const void*, std::size_t) { return CUDA_ERROR_INVALID_VALUE; }
CUresult memcpy_dtoh(void*, CUdeviceptr, std::size_t) { return CUDA_ERROR_INVALID_VALUE; }
CUresult memcpy_dtod_async(CUdeviceptr, CUdeviceptr, std::size_t, CUstream) { return CUDA_ERROR_INVALID_VALUE; }
CUresult memset_d8(CUdeviceptr, unsigned char, std::size_t) { return CUDA_SUCCESS; }

struct Entry {
  std::string_view name;
  void* function;
};

// Of exactly the type that the library calls it by.
template <class Function>
Entry entry(std::string_view name, Function Driver::*, Function function) {
  return {name, reinterpret_cast<void*>(function)};
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all{
      entry("cuGetErrorName", &Driver::GetErrorName, error_name),
      entry("cuGetErrorString", &Driver::GetErrorString, error_string),
      entry("cuDriverGetVersion", &Driver::DriverGetVersion, driver_get_version),
      entry("cuDeviceGetCount", &Driver::DeviceGetCount, device_get_count),
      entry("cuDeviceGet", &Driver::DeviceGet, device_get),
      entry("cuDeviceGetName", &Driver::DeviceGetName, device_get_name),
      entry("cuDeviceGetAttribute", &Driver::DeviceGetAttribute, device_get_attribute),
      entry("cuDevicePrimaryCtxRetain", &Driver::DevicePrimaryCtxRetain, primary_retain),
      entry("cuDevicePrimaryCtxRelease", &Driver::DevicePrimaryCtxRelease, primary_release),
      entry("cuCtxGetCurrent", &Driver::CtxGetCurrent, ctx_get_current),
      entry("cuCtxPushCurrent", &Driver::CtxPushCurrent, ctx_push),
      entry("cuCtxPopCurrent", &Driver::CtxPopCurrent, ctx_pop),
      entry("cuCtxGetDevice", &Driver::CtxGetDevice, ctx_get_device),
      entry("cuCtxSynchronize", &Driver::CtxSynchronize, ctx_synchronize),
      entry("cuLibraryLoadData", &Driver::LibraryLoadData, library_load),
      entry("cuLibraryUnload", &Driver::LibraryUnload, library_unload),
      entry("cuLibraryGetKernel", &Driver::LibraryGetKernel, library_get_kernel),
      entry("cuKernelGetFunction", &Driver::KernelGetFunction, kernel_get_function),
      entry("cuFuncLoad", &Driver::FuncLoad, func_load),
      entry("cuKernelSetAttribute", &Driver::KernelSetAttribute, kernel_set_attribute),
      entry("cuFuncGetAttribute", &Driver::FuncGetAttribute, func_get_attribute),
      entry("cuOccupancyMaxActiveBlocksPerMultiprocessor", &Driver::OccupancyMaxActiveBlocksPerMultiprocessor,
            occupancy),
      entry("cuOccupancyMaxActiveClusters", &Driver::OccupancyMaxActiveClusters, active_clusters),
      entry("cuThreadExchangeStreamCaptureMode", &Driver::ThreadExchangeStreamCaptureMode, exchange_mode),
      entry("cuStreamIsCapturing", &Driver::StreamIsCapturing, stream_is_capturing),
      entry("cuLaunchKernel", &Driver::LaunchKernel, launch_kernel),
      entry("cuLaunchKernelEx", &Driver::LaunchKernelEx, launch_kernel_ex),
      entry("cuStreamCreate", &Driver::StreamCreate, stream_create),
      entry("cuStreamDestroy", &Driver::StreamDestroy, stream_destroy),
      entry("cuStreamSynchronize", &Driver::StreamSynchronize, stream_synchronize),
      entry("cuStreamGetId", &Driver::StreamGetId, stream_get_id),
      entry("cuStreamBeginCapture", &Driver::StreamBeginCapture, stream_begin_capture),
      entry("cuStreamEndCapture", &Driver::StreamEndCapture, stream_end_capture),
      entry("cuGraphInstantiateWithFlags", &Driver::GraphInstantiateWithFlags, graph_instantiate),
      entry("cuGraphLaunch", &Driver::GraphLaunch, graph_launch),
      entry("cuGraphExecDestroy", &Driver::GraphExecDestroy, graph_exec_destroy),
      entry("cuGraphDestroy", &Driver::GraphDestroy, graph_destroy),
      entry("cuEventCreate", &Driver::EventCreate, event_create),
      entry("cuEventDestroy", &Driver::EventDestroy, event_destroy),
      entry("cuEventRecord", &Driver::EventRecord, event_record),
      entry("cuEventQuery", &Driver::EventQuery, event_query),
      entry("cuEventSynchronize", &Driver::EventSynchronize, event_synchronize),
      entry("cuEventElapsedTime", &Driver::EventElapsedTime, event_elapsed),
      entry("cuMemAlloc", &Driver::MemAlloc, mem_alloc),
      entry("cuMemFree", &Driver::MemFree, mem_free),
      entry("cuMemGetInfo", &Driver::MemGetInfo, mem_get_info),
      entry("cuMemcpyHtoD", &Driver::MemcpyHtoD, memcpy_htod),
      entry("cuMemcpyDtoH", &Driver::MemcpyDtoH, memcpy_dtoh),
      entry("cuMemcpyDtoDAsync", &Driver::MemcpyDtoDAsync, memcpy_dtod_async),
      entry("cuMemsetD8Async", &Driver::MemsetD8Async, memset_d8_async),
      entry("cuPointerGetAttribute", &Driver::PointerGetAttribute, pointer_get_attribute),
      entry("cuCtxGetId", &Driver::CtxGetId, ctx_get_id),
      entry("cuMemsetD8", &Driver::MemsetD8, memset_d8),
  };
  return all;
}

}  // namespace

extern "C" CUresult cuInit(unsigned) { return CUDA_SUCCESS; }

extern "C" CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t,
                                        CUdriverProcAddressQueryResult* status) {
  const auto found = std::ranges::find(entries(), std::string_view(name), &Entry::name);
  *function = found == entries().end() ? nullptr : found->function;
  *status = *function == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

namespace jitsoftmax::stand_in {

void set_compute_capability(int major) { compute_capability = major; }
void know_clusters(bool does) { knows_clusters.store(does); }
void observe(bool on) { observed.store(on); }
std::uint64_t launches() { return launched; }
std::uint64_t context_calls() { return context_calls_made; }

std::vector<Launch> take_launches() {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().launches, {});
}

std::vector<std::string> violations() {
  const std::lock_guard lock(state().mutex);
  return state().violations;
}

void fail_loads(int count, CUresult with) {
  const std::lock_guard lock(state().mutex);
  state().loads_to_fail = count;
  state().load_failure = with;
}

int loads() {
  const std::lock_guard lock(state().mutex);
  return state().loads;
}

int loaded_libraries() {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(std::ranges::count_if(state().libraries, [](const auto& l) { return l->alive; }));
}

CUcontext make_context(int device) {
  const std::lock_guard lock(state().mutex);
  return add(state().contexts, {.device = device});
}

void destroy_context(CUcontext context) {
  const std::lock_guard lock(state().mutex);
  context->alive = false;
}

void set_current(CUcontext context) {
  current.clear();
  if (context != nullptr) current.push_back(context);
}

CUcontext current_context() { return current.empty() ? nullptr : current.back(); }

CUcontext primary_context(int device) {
  CUcontext context = nullptr;
  primary_retain(&context, device);
  return context;
}

int contexts_on(int device) {
  const std::lock_guard lock(state().mutex);
  return static_cast<int>(
      std::ranges::count_if(state().contexts, [&](const auto& context) { return context->device == device; }));
}

void hold_launches(bool on) { launches_held = on; }
int entered() { return launches_entered; }

void hold(CUstream stream) {
  const std::lock_guard lock(state().mutex);
  stream_of(stream).held = true;
}

void finish(CUstream handle) {
  const std::lock_guard lock(state().mutex);
  CUstream_st& stream = stream_of(handle);
  stream.held = false;
  stream.done = stream.issued;
  stream.running.clear();
}

}  // namespace jitsoftmax::stand_in
