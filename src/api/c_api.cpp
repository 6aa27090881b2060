// The C API: the same verbs, exceptions turned into status codes and a message.
#include <jitsoftmax/jitsoftmax.h>

#include <cstdint>
#include <jitsoftmax/jitsoftmax.hpp>
#include <new>
#include <string>

struct jitsoftmax_engine {
  jitsoftmax::Engine engine;
};
struct jitsoftmax_kernel {
  jitsoftmax::Kernel kernel;
};

namespace {

using jitsoftmax::Error;
using jitsoftmax::ErrorCode;

// The one piece of state outside objects: a message a thread, as errno.
thread_local std::string last_error;

jitsoftmax_status failed(jitsoftmax_status status, const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
  return status;
}

template <class Body>
jitsoftmax_status guarded(Body&& body) noexcept {
  try {
    body();
    return JITSOFTMAX_OK;
  } catch (const Error& error) {
    return failed(static_cast<jitsoftmax_status>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return failed(JITSOFTMAX_OUT_OF_MEMORY, "host memory is exhausted");
  } catch (const std::exception& error) {
    return failed(JITSOFTMAX_INTERNAL, error.what());
  } catch (...) {
    return failed(JITSOFTMAX_INTERNAL, "unknown exception");
  }
}

void require(const void* pointer, const char* name) {
  if (pointer == nullptr) throw Error(ErrorCode::invalid_argument, std::string(name) + " is null");
}

// Out-of-range values of the caller become values of no enumeration, which the library refuses.
template <class Enumeration>
Enumeration enumerator(std::int32_t value) noexcept {
  return value < 0 || value > 255 ? Enumeration{255} : static_cast<Enumeration>(value);
}

jitsoftmax::Problem to_problem(const jitsoftmax_problem* problem) {
  require(problem, "problem");
  jitsoftmax::Problem result;
  result.cols = problem->cols;
  result.in = enumerator<jitsoftmax::DType>(problem->in);
  result.out = enumerator<jitsoftmax::DType>(problem->out);
  result.op = enumerator<jitsoftmax::Op>(problem->op);
  result.layout = enumerator<jitsoftmax::Layout>(problem->layout);
  return result;
}

jitsoftmax::Rows to_rows(const jitsoftmax_rows* rows) {
  require(rows, "rows");
  jitsoftmax::Rows result;
  result.out = rows->out;
  result.in = rows->in;
  result.count = rows->count;
  result.out_stride = rows->out_stride;
  result.in_stride = rows->in_stride;
  result.inner = rows->inner;
  result.scale = rows->scale;
  return result;
}

}  // namespace

jitsoftmax_status jitsoftmax_create(const char* device, jitsoftmax_engine** engine) {
  return guarded([&] {
    require(engine, "engine");
    *engine = nullptr;
    jitsoftmax::Options options = jitsoftmax::Options::from_environment();
    if (device != nullptr) options.device = jitsoftmax::Device::parse(device);
    *engine = std::make_unique<jitsoftmax_engine>(jitsoftmax_engine{jitsoftmax::Engine(std::move(options))}).release();
  });
}

void jitsoftmax_destroy(jitsoftmax_engine* engine) { const std::unique_ptr<jitsoftmax_engine> owned(engine); }

jitsoftmax_status jitsoftmax_prepare(jitsoftmax_engine* engine, const jitsoftmax_problem* problem,
                                     jitsoftmax_kernel** kernel) {
  return guarded([&] {
    require(kernel, "kernel");
    *kernel = nullptr;
    require(engine, "engine");
    *kernel =
        std::make_unique<jitsoftmax_kernel>(jitsoftmax_kernel{engine->engine.prepare(to_problem(problem))}).release();
  });
}

void jitsoftmax_kernel_destroy(jitsoftmax_kernel* kernel) { const std::unique_ptr<jitsoftmax_kernel> owned(kernel); }

jitsoftmax_status jitsoftmax_launch(const jitsoftmax_kernel* kernel, const jitsoftmax_rows* rows, CUstream_st* stream) {
  return guarded([&] {
    require(kernel, "kernel");
    kernel->kernel.launch(to_rows(rows), stream);
  });
}

jitsoftmax_status jitsoftmax_softmax(jitsoftmax_engine* engine, const jitsoftmax_problem* problem,
                                     const jitsoftmax_rows* rows, CUstream_st* stream) {
  return guarded([&] {
    require(engine, "engine");
    engine->engine.softmax(to_problem(problem), to_rows(rows), stream);
  });
}

const char* jitsoftmax_last_error(void) { return last_error.c_str(); }
