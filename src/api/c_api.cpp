// The C API: the same verbs, exceptions turned into status codes and a message.
#include <jitsoftmax/jitsoftmax.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <jitsoftmax/jitsoftmax.hpp>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "api/option_text.hpp"

struct jitsoftmax_options {
  jitsoftmax::Options options;
};
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

template <class Enumeration>
std::int32_t number(Enumeration value) noexcept {
  return static_cast<std::int32_t>(value);
}

// A request of a caller whose header may be older or newer than this library. An older one's missing end is 0;
// of a newer one nothing is ignored that it asks for.
template <class Request>
Request read(const Request* given, std::size_t size) {
  static_assert(std::is_trivially_copyable_v<Request>);
  require(given, "request");
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(given), size);
  const std::size_t known = std::min(size, sizeof(Request));
  if (std::any_of(bytes.begin() + static_cast<std::ptrdiff_t>(known), bytes.end(),
                  [](std::byte byte) { return byte != std::byte{0}; })) {
    throw Error(ErrorCode::invalid_argument,
                "the request is " + std::to_string(size) + " bytes long, of which this library, version " +
                    JITSOFTMAX_VERSION ", knows " + std::to_string(known) +
                    ", and asks for something in the others; use a library as new as the header");
  }
  Request request{};
  std::memcpy(&request, given, known);
  return request;
}

// Likewise for what the library fills.
template <class Report>
void write(Report* report, std::size_t size, const Report& value) noexcept {
  static_assert(std::is_trivially_copyable_v<Report>);
  std::memset(report, 0, size);
  std::memcpy(report, &value, std::min(size, sizeof(Report)));
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

jitsoftmax_problem from_problem(const jitsoftmax::Problem& problem) noexcept {
  return {problem.cols, number(problem.in), number(problem.out), number(problem.op), number(problem.layout)};
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

jitsoftmax_engine* new_engine(jitsoftmax::Options options) {
  return std::make_unique<jitsoftmax_engine>(jitsoftmax_engine{jitsoftmax::Engine(std::move(options))}).release();
}

bool tell(const jitsoftmax_warmup_request& request, const jitsoftmax::WarmupItem& item, std::size_t done,
          std::size_t total) {
  const jitsoftmax_problem problem = from_problem(item.problem);
  const std::string arch = item.arch.name();
  jitsoftmax_warmup_item shown{};
  shown.problem = &problem;
  shown.arch = arch.c_str();
  shown.specialization = item.specialization.c_str();
  shown.outcome = number(item.outcome);
  shown.seconds = item.seconds;
  shown.error = item.error.c_str();
  return request.progress(request.user, &shown, done, total) != 0;
}

void tell(const jitsoftmax_tune_request& request, const jitsoftmax::TuneReport& report) {
  for (const jitsoftmax::TuneItem& item : report.items) {
    jitsoftmax_tune_item shown{};
    shown.specialization = item.specialization.c_str();
    shown.rejected = item.rejected.c_str();
    shown.median = item.median;
    shown.p10 = item.p10;
    shown.p90 = item.p90;
    shown.rounds = item.rounds;
    shown.timed = item.timed ? 1 : 0;
    shown.failed = item.failed ? 1 : 0;
    shown.winner = item.specialization == report.winner ? 1 : 0;
    shown.built_in = item.specialization == report.built_in ? 1 : 0;
    request.result(request.user, &shown);
  }
}

}  // namespace

const char* jitsoftmax_version(void) { return JITSOFTMAX_VERSION; }

jitsoftmax_status jitsoftmax_options_create(jitsoftmax_options** options) {
  return guarded([&] {
    require(options, "options");
    *options = nullptr;
    *options =
        std::make_unique<jitsoftmax_options>(jitsoftmax_options{jitsoftmax::Options::from_environment()}).release();
  });
}

void jitsoftmax_options_destroy(jitsoftmax_options* options) {
  const std::unique_ptr<jitsoftmax_options> owned(options);
}

jitsoftmax_status jitsoftmax_options_set(jitsoftmax_options* options, const char* name, const char* value) {
  return guarded([&] {
    require(options, "options");
    require(name, "name");
    require(value, "value");
    jitsoftmax::set_option(options->options, name, value, "option " + std::string(name));
  });
}

jitsoftmax_status jitsoftmax_options_set_log(jitsoftmax_options* options, jitsoftmax_log log, void* user) {
  return guarded([&] {
    require(options, "options");
    if (log == nullptr) {
      options->options.log = nullptr;
      return;
    }
    options->options.log = [log, user](jitsoftmax::LogLevel level, const std::string& message) {
      log(user, number(level), message.c_str());
    };
  });
}

jitsoftmax_status jitsoftmax_create(const char* device, jitsoftmax_engine** engine) {
  return guarded([&] {
    require(engine, "engine");
    *engine = nullptr;
    jitsoftmax::Options options = jitsoftmax::Options::from_environment();
    if (device != nullptr) options.device = jitsoftmax::Device::parse(device);
    *engine = new_engine(std::move(options));
  });
}

jitsoftmax_status jitsoftmax_create_with(const jitsoftmax_options* options, jitsoftmax_engine** engine) {
  return guarded([&] {
    require(engine, "engine");
    *engine = nullptr;
    require(options, "options");
    *engine = new_engine(options->options);
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

jitsoftmax_status jitsoftmax_kernel_specialization_for(const jitsoftmax_kernel* kernel, const jitsoftmax_rows* rows,
                                                       char* text, size_t size, size_t* length) {
  return guarded([&] {
    require(kernel, "kernel");
    if (size != 0) require(text, "text");
    const std::string spelling = kernel->kernel.specialization_for(to_rows(rows));
    if (size != 0) text[spelling.copy(text, size - 1)] = '\0';
    if (length != nullptr) *length = spelling.size();
  });
}

jitsoftmax_status jitsoftmax_get_stats(const jitsoftmax_engine* engine, jitsoftmax_stats* stats, size_t size) {
  return guarded([&] {
    require(engine, "engine");
    require(stats, "stats");
    const jitsoftmax::Stats now = engine->engine.stats();
    jitsoftmax_stats result{};
    result.kernels = now.kernels;
    result.tuned_kernels = now.tuned_kernels;
    result.disk_hits = now.disk_hits;
    result.compiles = now.compiles;
    result.compile_failures = now.compile_failures;
    result.rejected_entries = now.rejected_entries;
    result.compile_seconds = now.compile_seconds;
    result.load_seconds = now.load_seconds;
    result.evictions = now.evictions;
    result.background_made = now.background_made;
    result.background_failures = now.background_failures;
    result.background_waiting = now.background_waiting;
    write(stats, size, result);
  });
}

jitsoftmax_status jitsoftmax_warmup(jitsoftmax_engine* engine, const jitsoftmax_warmup_request* request,
                                    size_t request_size, jitsoftmax_warmup_report* report, size_t report_size) {
  return guarded([&] {
    require(engine, "engine");
    require(report, "report");
    const jitsoftmax_warmup_request asked = read(request, request_size);
    require(asked.archs, "archs");
    if (asked.problem_count != 0) require(asked.problems, "problems");

    std::vector<jitsoftmax::Problem> problems;
    for (const jitsoftmax_problem& problem : std::span(asked.problems, asked.problem_count)) {
      problems.push_back(to_problem(&problem));
    }
    std::vector<jitsoftmax::Arch> archs;
    for (const std::string& name : jitsoftmax::split(asked.archs, ',')) archs.push_back(jitsoftmax::Arch::parse(name));
    jitsoftmax::WarmupOptions options;
    options.jobs = asked.jobs;
    if (asked.progress != nullptr) {
      options.progress = [&asked](const jitsoftmax::WarmupItem& item, std::size_t done, std::size_t total) {
        return tell(asked, item, done, total);
      };
    }
    const jitsoftmax::WarmupReport done = engine->engine.warmup(problems, archs, options);
    write(report, report_size,
          {done.count(jitsoftmax::WarmupOutcome::cached), done.count(jitsoftmax::WarmupOutcome::compiled),
           done.count(jitsoftmax::WarmupOutcome::failed)});
  });
}

jitsoftmax_status jitsoftmax_autotune(jitsoftmax_engine* engine, const jitsoftmax_tune_request* request,
                                      size_t request_size, jitsoftmax_tune_report* report, size_t report_size) {
  return guarded([&] {
    require(engine, "engine");
    require(report, "report");
    const jitsoftmax_tune_request asked = read(request, request_size);
    if (asked.effort != JITSOFTMAX_TUNE_QUICK && asked.effort != JITSOFTMAX_TUNE_FULL) {
      throw Error(ErrorCode::invalid_argument,
                  "effort is " + std::to_string(asked.effort) + "; known: 0 (quick), 1 (full)");
    }
    jitsoftmax::TuneOptions options;
    options.effort = enumerator<jitsoftmax::TuneEffort>(asked.effort);
    options.jobs = asked.jobs;
    if (asked.progress != nullptr) {
      options.progress = [&asked](const jitsoftmax::TuneProgress& progress) {
        return asked.progress(asked.user, progress.what.c_str(), progress.done, progress.total) != 0;
      };
    }
    const jitsoftmax::TuneReport done = engine->engine.autotune(to_problem(asked.problem), asked.rows, options);
    if (asked.result != nullptr) tell(asked, done);
    jitsoftmax_tune_report result{};
    result.candidates = done.items.size();
    result.timed = done.timed();
    result.few_rows = done.few_rows ? 1 : 0;
    result.stopped = done.stopped ? 1 : 0;
    result.kept = done.kept ? 1 : 0;
    result.seconds = done.seconds;
    write(report, report_size, result);
  });
}

const char* jitsoftmax_last_error(void) { return last_error.c_str(); }
