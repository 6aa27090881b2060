/* libjitsoftmax for C and for foreign-function interfaces: the verbs of jitsoftmax.hpp with status
 * codes. C99.
 *
 * Threads: every function may be called from any number of threads at once, except that an object
 * must not be destroyed while another thread uses it. No exception ever leaves a function.
 */
#ifndef JITSOFTMAX_H
#define JITSOFTMAX_H

/* NOLINTBEGIN(modernize-*): C */

#include <jitsoftmax/export.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st; /* a cudaStream_t or CUstream passes without a cast */

typedef struct jitsoftmax_engine jitsoftmax_engine;
typedef struct jitsoftmax_kernel jitsoftmax_kernel;

/* The values of jitsoftmax::ErrorCode, and 0. */
typedef enum jitsoftmax_status {
  JITSOFTMAX_OK = 0,
  JITSOFTMAX_INVALID_ARGUMENT = 1,
  JITSOFTMAX_NO_DRIVER = 2,
  JITSOFTMAX_NO_CONTEXT = 3,
  JITSOFTMAX_NO_COMPILER = 4,
  JITSOFTMAX_UNKNOWN_ARCH = 5,
  JITSOFTMAX_COMPILE_FAILED = 6,
  JITSOFTMAX_NOT_CACHED = 7,
  JITSOFTMAX_DRIVER_ERROR = 8,
  JITSOFTMAX_CAPTURING = 9,
  JITSOFTMAX_OUT_OF_MEMORY = 10,
  JITSOFTMAX_IO_ERROR = 11,
  JITSOFTMAX_INTERNAL = 12,
  JITSOFTMAX_CANCELLED = 13 /* of the C++ interface only */
} jitsoftmax_status;

typedef enum jitsoftmax_dtype {
  JITSOFTMAX_F16 = 0,
  JITSOFTMAX_BF16 = 1,
  JITSOFTMAX_F32 = 2,
  JITSOFTMAX_F64 = 3
} jitsoftmax_dtype;

typedef enum jitsoftmax_op { JITSOFTMAX_SOFTMAX = 0, JITSOFTMAX_LOG_SOFTMAX = 1 } jitsoftmax_op;

typedef enum jitsoftmax_layout { JITSOFTMAX_CONTIGUOUS = 0, JITSOFTMAX_STRIDED = 1 } jitsoftmax_layout;

/* As jitsoftmax::Problem. The last four are values of the enumerations above. */
typedef struct jitsoftmax_problem {
  int64_t cols;
  int32_t in;
  int32_t out;
  int32_t op;
  int32_t layout;
} jitsoftmax_problem;

/* As jitsoftmax::Rows. `inner` is 1 for contiguous rows; a stride of 0 means packed. */
typedef struct jitsoftmax_rows {
  void* out;
  const void* in;
  int64_t count;
  int64_t out_stride;
  int64_t in_stride;
  int64_t inner;
  float scale;
} jitsoftmax_rows;

/* An engine with the options of the environment. `device`: "current", "cuda:N" or "host"; null: as
 * the environment says, which is "current" by default. On failure *engine is null. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_create(const char* device, jitsoftmax_engine** engine);

/* Null is allowed. Kernels that were prepared stay usable. */
JITSOFTMAX_API void jitsoftmax_destroy(jitsoftmax_engine* engine);

/* Loads or compiles everything that the problem needs. The caller owns *kernel. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_prepare(jitsoftmax_engine* engine, const jitsoftmax_problem* problem,
                                                    jitsoftmax_kernel** kernel);
JITSOFTMAX_API void jitsoftmax_kernel_destroy(jitsoftmax_kernel* kernel);

/* Ordered on `stream`; null is the legacy default stream. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_launch(const jitsoftmax_kernel* kernel, const jitsoftmax_rows* rows,
                                                   struct CUstream_st* stream);

/* Prepares where needed, then launches. */
JITSOFTMAX_API jitsoftmax_status jitsoftmax_softmax(jitsoftmax_engine* engine, const jitsoftmax_problem* problem,
                                                    const jitsoftmax_rows* rows, struct CUstream_st* stream);

/* The message of the last call of this thread that did not return JITSOFTMAX_OK; "" before any.
 * Valid until this thread's next failing call. */
JITSOFTMAX_API const char* jitsoftmax_last_error(void);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-*) */

#endif
