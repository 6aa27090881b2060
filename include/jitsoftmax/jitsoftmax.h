/**
 * @file
 * libjitsoftmax for C and for foreign-function interfaces: the verbs of jitsoftmax.hpp with status codes. C99.
 *
 * Threads: every function may be called from any number of threads at once, except that an object must not be
 * changed or destroyed while another thread uses it. No exception ever leaves a function, and nothing is printed.
 *
 * Status: whatever is not JITSOFTMAX_OK leaves a message for people, see jitsoftmax_last_error(). A pointer that must
 * not be null is JITSOFTMAX_INVALID_ARGUMENT if it is. Any function may return JITSOFTMAX_OUT_OF_MEMORY.
 *
 * Compatibility: enumerations keep their values. Options are set by name, so that a new one is no new symbol and an
 * older library refuses it with a message. jitsoftmax_problem and jitsoftmax_rows never change. Every other structure
 * may grow at its end: it is passed with its size, as the caller knows it (`sizeof`), and what one side does not know
 * is 0 for the other; a request that is not 0 where this library knows no member is JITSOFTMAX_INVALID_ARGUMENT.
 * What a callback is shown may grow likewise, and is valid during the call only.
 */
#ifndef JITSOFTMAX_H
#define JITSOFTMAX_H

/* NOLINTBEGIN(modernize-*): C */

#include <jitsoftmax/export.h>
#include <jitsoftmax/version.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* a cudaStream_t or CUstream passes without a cast */

typedef struct jitsoftmax_options jitsoftmax_options; /**< As jitsoftmax::Options. */
typedef struct jitsoftmax_engine jitsoftmax_engine;   /**< As jitsoftmax::Engine. */
typedef struct jitsoftmax_kernel jitsoftmax_kernel;   /**< As jitsoftmax::Kernel. */

/** The values of jitsoftmax::ErrorCode, and 0. */
typedef enum jitsoftmax_status {
  JITSOFTMAX_OK = 0,               /**< Done. */
  JITSOFTMAX_INVALID_ARGUMENT = 1, /**< A size, stride, pointer, type or option that cannot be served. */
  JITSOFTMAX_NO_DRIVER = 2,        /**< libcuda is missing, or finds no device. */
  JITSOFTMAX_NO_CONTEXT = 3,       /**< The device is "current" and the calling thread has no current context. */
  JITSOFTMAX_NO_COMPILER = 4,      /**< libnvrtc cannot be used and a kernel has to be compiled. */
  JITSOFTMAX_UNKNOWN_ARCH = 5,     /**< This NVRTC cannot compile for the architecture. */
  JITSOFTMAX_COMPILE_FAILED = 6,   /**< NVRTC refused the program: a fault in the library or its installation. */
  JITSOFTMAX_NOT_CACHED = 7,       /**< on_miss is "fail" and the kernel is in no cache directory. */
  JITSOFTMAX_DRIVER_ERROR = 8,     /**< The driver reported an error for this call. */
  JITSOFTMAX_CAPTURING = 9,        /**< The stream is being captured and the kernel is not prepared. */
  JITSOFTMAX_OUT_OF_MEMORY = 10,   /**< Host or device memory is exhausted. */
  JITSOFTMAX_IO_ERROR = 11,        /**< A file or directory that is needed cannot be read or written. */
  JITSOFTMAX_INTERNAL = 12,        /**< A broken invariant: please report. */
  JITSOFTMAX_CANCELLED = 13        /**< Of the C++ interface only. */
} jitsoftmax_status;

/** Element types. */
typedef enum jitsoftmax_dtype {
  JITSOFTMAX_F16 = 0,  /**< IEEE binary16. */
  JITSOFTMAX_BF16 = 1, /**< bfloat16. */
  JITSOFTMAX_F32 = 2,  /**< float. */
  JITSOFTMAX_F64 = 3   /**< double. */
} jitsoftmax_dtype;

/** What is computed, see jitsoftmax::Op. */
typedef enum jitsoftmax_op {
  JITSOFTMAX_SOFTMAX = 0,    /**< exp(x - max) / sum. */
  JITSOFTMAX_LOG_SOFTMAX = 1 /**< (x - max) - log(sum). */
} jitsoftmax_op;

/** How the elements of a row lie in memory, see jitsoftmax::Layout. */
typedef enum jitsoftmax_layout {
  JITSOFTMAX_CONTIGUOUS = 0, /**< They are neighbours. */
  JITSOFTMAX_STRIDED = 1     /**< They are jitsoftmax_rows::inner elements apart. */
} jitsoftmax_layout;

/** What kernels are specialized for: jitsoftmax::Problem. */
typedef struct jitsoftmax_problem {
  int64_t cols;   /**< The length of a row in elements. */
  int32_t in;     /**< A jitsoftmax_dtype; equal to `out`, or f16/bf16 on one side and f32 on the other. */
  int32_t out;    /**< A jitsoftmax_dtype. */
  int32_t op;     /**< A jitsoftmax_op. */
  int32_t layout; /**< A jitsoftmax_layout. */
} jitsoftmax_problem;

/** One launch: jitsoftmax::Rows, which says where row r has its element j. Memory stays the caller's. */
typedef struct jitsoftmax_rows {
  void* out;          /**< Device memory; host memory if the device is "host". May be `in`. */
  const void* in;     /**< Likewise. */
  int64_t count;      /**< Rows. 0 does nothing and allows null pointers. */
  int64_t out_stride; /**< Elements from one row to the next; 0: packed. */
  int64_t in_stride;  /**< Likewise. */
  int64_t inner;      /**< 1 for contiguous rows. */
  float scale;        /**< softmax(scale * x). */
} jitsoftmax_rows;

/** The version of the library that runs, as "0.1.0". */
JITSOFTMAX_API const char* jitsoftmax_version(void);

/** The message of the last call of this thread that did not return JITSOFTMAX_OK; "" before any. Valid until this
 * thread's next failing call. */
JITSOFTMAX_API const char* jitsoftmax_last_error(void);

/**
 * @name Options
 * @{
 */

/** Receives what the library has to say: warnings above all. `level`: 0 debug, 1 info, 2 warning, 3 error. Called from
 * any thread, also from several at once. */
typedef void (*jitsoftmax_log)(void* user, int32_t level, const char* message);

/** The options of the environment, to be changed; see jitsoftmax::Options::from_environment. The caller owns *options,
 * which is null on failure. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_options_create(jitsoftmax_options** options);

/** Null is allowed. Engines that were made with them do not mind. */
JITSOFTMAX_API void jitsoftmax_options_destroy(jitsoftmax_options* options);

/** Sets one option. Both strings are copied. An unknown name or a value that cannot be understood is
 * JITSOFTMAX_INVALID_ARGUMENT, with the known ones in the message, and changes nothing.
 *
 * | name            | value                                                                                |
 * |-----------------|--------------------------------------------------------------------------------------|
 * | `device`        | `current`, `cuda:N`, `host`                                                          |
 * | `on_miss`       | what to do if a kernel is in no cache: `compile`, `background`, `fail`                |
 * | `masked_rows`   | what a row of -inf only becomes: `nan`, `zero`                                       |
 * | `deterministic` | `true`, `false`: same bits for the same row                                          |
 * | `variant`       | a kernel by its name, as `v3`; empty: the library chooses                            |
 * | `use_records`   | `true`, `false`: whether tuning records choose kernels                               |
 * | `cache_dir`     | the writable directory; empty: none, kernels are kept in memory only                 |
 * | `cache_layers`  | read-only directories, colon-separated                                               |
 * | `cache_limit`   | the most bytes of kernels in the writable directory, as `500000` or `64MB`; `none`   |
 * | `trusted_owners`| other users whose files there are used: names or ids, comma-separated                |
 * | `specialize_after` | with `on_miss` `background`: compile what was asked for so many times, at least 1        |
 * | `workers`       | compiles in the background at once; 0: the library chooses                           |
 * | `max_kernels`   | the most problems whose kernels stay loaded, at least 1; `none`                       |
 * | `programmatic_launch` | `true`, `false`: kernels may begin while the one before on the stream is running     |
 * | `nvrtc`         | libnvrtc, or its folder; empty: the usual places                                     |
 */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_options_set(jitsoftmax_options* options, const char* name,
                                                        const char* value);

/** Who is told; a null `log`: nobody, which is the default. It is called with `user`, which must stay valid until the
 * last engine made with these options, and the last kernel of such an engine, is destroyed. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_options_set_log(jitsoftmax_options* options, jitsoftmax_log log,
                                                            void* user);

/** @} */

/**
 * @name Engines and kernels
 * @{
 */

/** An engine with the options of the environment. `device`: "current", "cuda:N" or "host"; null: as the environment
 * says, which is "current" by default. The caller owns *engine, which is null on failure. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_create(const char* device, jitsoftmax_engine** engine);

/** An engine with these options, of which it keeps a copy. The caller owns *engine, which is null on failure. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_create_with(const jitsoftmax_options* options, jitsoftmax_engine** engine);

/** Null is allowed. Kernels that were prepared stay usable. */
JITSOFTMAX_API void jitsoftmax_destroy(jitsoftmax_engine* engine);

/** Loads or compiles everything that the problem needs; see jitsoftmax::Engine::prepare. The caller owns *kernel, which
 * is null on failure. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_prepare(jitsoftmax_engine* engine, const jitsoftmax_problem* problem,
                                                    jitsoftmax_kernel** kernel);

/** Null is allowed. Wait for its launches first where its engine is gone: the code goes with the last who has it. */
JITSOFTMAX_API void jitsoftmax_kernel_destroy(jitsoftmax_kernel* kernel);

/** Computes the rows, ordered on `stream`; null is the legacy default stream. See jitsoftmax::Kernel::launch. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_launch(const jitsoftmax_kernel* kernel, const jitsoftmax_rows* rows,
                                                   struct CUstream_st* stream);

/** Prepares where needed, then launches; see jitsoftmax::Engine::softmax. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_softmax(jitsoftmax_engine* engine, const jitsoftmax_problem* problem,
                                                    const jitsoftmax_rows* rows, struct CUstream_st* stream);

/** Writes the spelling of the specialization that a launch of these rows runs into `text`, cut to `size` bytes, of
 * which the last is 0. *length is how long it is in full, without the 0; `length` may be null, and `text` if `size` is
 * 0. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_kernel_specialization_for(const jitsoftmax_kernel* kernel,
                                                                      const jitsoftmax_rows* rows, char* text,
                                                                      size_t size, size_t* length);

/** Counters since the engine was made: jitsoftmax::Stats. */
typedef struct jitsoftmax_stats {
  uint64_t kernels;             /**< Specializations loaded or compiled by this engine. */
  uint64_t tuned_kernels;       /**< Of these, picked by a tuning record in the place of the built-in choice. */
  uint64_t disk_hits;           /**< Of these, found in a cache directory. */
  uint64_t compiles;            /**< Of these, compiled. */
  uint64_t compile_failures;    /**< Compiles that failed. */
  uint64_t rejected_entries;    /**< Damaged, untrusted or refused by the driver, in a cache directory. */
  double compile_seconds;       /**< Summed over threads. */
  double load_seconds;          /**< Reading, verifying and handing cubins to the driver. */
  uint64_t evictions;           /**< Problems whose kernels were unloaded (option `max_kernels`). */
  uint64_t background_made;     /**< Problems whose exact kernels came in the background. */
  uint64_t background_failures; /**< Problems that stay with the generic kernel. */
  uint64_t background_waiting;  /**< Of this moment: problems whose compile has not begun. */
} jitsoftmax_stats;

/** Fills *stats; `size` is sizeof(jitsoftmax_stats). */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_get_stats(const jitsoftmax_engine* engine, jitsoftmax_stats* stats,
                                                      size_t size);

/** @} */

/**
 * @name Warmup
 * @{
 */

/** What became of one specialization: jitsoftmax::WarmupOutcome. */
typedef enum jitsoftmax_warmup_outcome {
  JITSOFTMAX_WARMUP_CACHED = 0,   /**< It was there. */
  JITSOFTMAX_WARMUP_COMPILED = 1, /**< It was compiled. */
  JITSOFTMAX_WARMUP_FAILED = 2    /**< It is not there. */
} jitsoftmax_warmup_outcome;

/** One specialization for one architecture: jitsoftmax::WarmupItem. */
typedef struct jitsoftmax_warmup_item {
  const jitsoftmax_problem* problem; /**< That needs it, perhaps beside others. */
  const char* arch;                  /**< As "sm_90". */
  const char* specialization;        /**< Its spelling. */
  int32_t outcome;                   /**< A jitsoftmax_warmup_outcome. */
  double seconds;                    /**< That it took. */
  const char* error;                 /**< Why it failed; "" if it did not. */
} jitsoftmax_warmup_item;

/** Called after each item, from any thread but one at a time. Returns 0 to stop before the next item, else go on. */
typedef int32_t (*jitsoftmax_warmup_progress)(void* user, const jitsoftmax_warmup_item* item, uint64_t done,
                                              uint64_t total);

/** What to warm up. */
typedef struct jitsoftmax_warmup_request {
  const jitsoftmax_problem* problems;  /**< `problem_count` of them. */
  uint64_t problem_count;              /**< May be 0. */
  const char* archs;                   /**< Comma-separated, as "sm_90,sm_100a". */
  int32_t jobs;                        /**< Compiles at once; 0: as many as there are cores. */
  jitsoftmax_warmup_progress progress; /**< May be null. */
  void* user;                          /**< The first argument of `progress`. */
} jitsoftmax_warmup_request;

/** How many items came to what. */
typedef struct jitsoftmax_warmup_report {
  uint64_t cached;   /**< Were there. */
  uint64_t compiled; /**< Were compiled. */
  uint64_t failed;   /**< Are not there, also those that were not reached. */
} jitsoftmax_warmup_report;

/** Compiles every specialization that the problems need on the architectures into the cache directory; see
 * jitsoftmax::Engine::warmup. Needs NVRTC, but no driver and no GPU. An item that fails is counted, told to
 * `progress`, and does not stop the others, nor does it make the status other than JITSOFTMAX_OK. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_warmup(jitsoftmax_engine* engine, const jitsoftmax_warmup_request* request,
                                                   size_t request_size, jitsoftmax_warmup_report* report,
                                                   size_t report_size);

/** @} */

/**
 * @name Tuning
 * @{
 */

/** How carefully: jitsoftmax::TuneEffort. */
typedef enum jitsoftmax_tune_effort {
  JITSOFTMAX_TUNE_QUICK = 0, /**< Seconds a shape. */
  JITSOFTMAX_TUNE_FULL = 1   /**< Longer measurements and more rounds. */
} jitsoftmax_tune_effort;

/** What became of one candidate: jitsoftmax::TuneItem. */
typedef struct jitsoftmax_tune_item {
  const char* specialization; /**< Its spelling. */
  const char* rejected;       /**< Why it cannot be chosen; "": it can. */
  double median;              /**< Seconds a launch; 0: it was not timed. */
  double p10;                 /**< The 10th percentile. */
  double p90;                 /**< The 90th percentile. */
  int32_t rounds;             /**< That it was last timed for. */
  int32_t timed;              /**< 1: now, and not in an earlier tune. */
  int32_t failed;             /**< 1: to compile or to launch. */
  int32_t winner;             /**< 1: it is used from now on. */
  int32_t built_in;           /**< 1: it is used without a record. */
} jitsoftmax_tune_item;

/** Called after each candidate, `what`, from the thread that tunes. Returns 0 to stop, else go on. */
typedef int32_t (*jitsoftmax_tune_progress)(void* user, const char* what, uint64_t done, uint64_t total);

/** Called for each candidate when all is done, from the thread that tunes: the winner, then the faster before the
 * slower, then those ruled out. */
typedef void (*jitsoftmax_tune_result)(void* user, const jitsoftmax_tune_item* item);

/** What to tune. */
typedef struct jitsoftmax_tune_request {
  const jitsoftmax_problem* problem; /**< For which. */
  int64_t rows;                      /**< For how many rows. */
  int32_t effort;                    /**< A jitsoftmax_tune_effort. */
  int32_t jobs;                      /**< Compiles at once; 0: all cores but the one that launches. */
  jitsoftmax_tune_progress progress; /**< May be null. */
  jitsoftmax_tune_result result;     /**< May be null. */
  void* user;                        /**< The first argument of both. */
} jitsoftmax_tune_request;

/** What came of it: jitsoftmax::TuneReport. */
typedef struct jitsoftmax_tune_report {
  uint64_t candidates; /**< All that were considered. */
  uint64_t timed;      /**< Those that this call timed. */
  int32_t few_rows;    /**< 1: the record is for up to 64 rows; 0: for more. */
  int32_t stopped;     /**< 1: by `progress`. */
  int32_t kept;        /**< 1: the record is in the cache directory. */
  double seconds;      /**< That it took. */
} jitsoftmax_tune_report;

/** Finds the fastest specialization for so many rows of the problem on this engine's GPU, and keeps it in the cache
 * directory; see jitsoftmax::Engine::autotune, also for what the status is when. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_autotune(jitsoftmax_engine* engine, const jitsoftmax_tune_request* request,
                                                     size_t request_size, jitsoftmax_tune_report* report,
                                                     size_t report_size);

/** @} */

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-*) */

#endif
