/* The C API keeps its promises on the CPU: results, status codes, messages, and what null does. */
#include <jitsoftmax/jitsoftmax.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "expect.h"

enum { row_count = 2, cols = 3 };

static const float input[row_count * cols] = {0.0F, 1.0F, 2.0F, 5.0F, 5.0F, 5.0F};

static jitsoftmax_problem problem_of(jitsoftmax_op op) {
  const jitsoftmax_problem problem = {cols, JITSOFTMAX_F32, JITSOFTMAX_F32, op, JITSOFTMAX_CONTIGUOUS};
  return problem;
}

static jitsoftmax_rows rows_to(float* out) {
  const jitsoftmax_rows rows = {out, input, row_count, 0, 0, 1, 1.0F};
  return rows;
}

/* Whether `out` is the softmax of `input`, or its logarithm. */
static int is_result(const float* out, jitsoftmax_op op) {
  int row = 0;
  for (row = 0; row < row_count; ++row) {
    const float* const x = input + row * cols;
    double sum = 0;
    int i = 0;
    for (i = 0; i < cols; ++i) sum += exp((double)x[i]);
    for (i = 0; i < cols; ++i) {
      const double right = op == JITSOFTMAX_SOFTMAX ? exp((double)x[i]) / sum : (double)x[i] - log(sum);
      if (!(fabs((double)out[row * cols + i] - right) <= 1e-6)) return 0;
    }
  }
  return 1;
}

static void computes(jitsoftmax_engine* engine) {
  const jitsoftmax_problem problem = problem_of(JITSOFTMAX_SOFTMAX);
  const jitsoftmax_problem logarithm = problem_of(JITSOFTMAX_LOG_SOFTMAX);
  float out[row_count * cols] = {0};
  jitsoftmax_rows rows = rows_to(out);
  jitsoftmax_kernel* kernel = NULL;

  EXPECT(jitsoftmax_prepare(engine, &problem, &kernel) == JITSOFTMAX_OK);
  EXPECT(kernel != NULL);
  EXPECT(jitsoftmax_launch(kernel, &rows, NULL) == JITSOFTMAX_OK);
  EXPECT(is_result(out, JITSOFTMAX_SOFTMAX));

  EXPECT(jitsoftmax_softmax(engine, &logarithm, &rows, NULL) == JITSOFTMAX_OK);
  EXPECT(is_result(out, JITSOFTMAX_LOG_SOFTMAX));

  rows.count = 0;
  rows.in = NULL;
  rows.out = NULL;
  EXPECT(jitsoftmax_launch(kernel, &rows, NULL) == JITSOFTMAX_OK);
  jitsoftmax_kernel_destroy(kernel);
}

/* Text goes into the caller's buffer, cut where it ends. */
static void names_what_runs(jitsoftmax_engine* engine) {
  const jitsoftmax_problem problem = problem_of(JITSOFTMAX_SOFTMAX);
  float out[row_count * cols] = {0};
  const jitsoftmax_rows rows = rows_to(out);
  jitsoftmax_kernel* kernel = NULL;
  char text[256] = {0};
  char cut[5] = {'x', 'x', 'x', 'x', 'x'};
  size_t length = 0;

  EXPECT(jitsoftmax_prepare(engine, &problem, &kernel) == JITSOFTMAX_OK);
  EXPECT(jitsoftmax_kernel_specialization_for(kernel, &rows, text, sizeof text, &length) == JITSOFTMAX_OK);
  EXPECT(length == strlen(text) && length > 3);
  EXPECT(jitsoftmax_kernel_specialization_for(kernel, &rows, cut, sizeof cut - 1, NULL) == JITSOFTMAX_OK);
  EXPECT(strlen(cut) == 3 && strncmp(cut, text, 3) == 0 && cut[4] == 'x');
  length = 0;
  EXPECT(jitsoftmax_kernel_specialization_for(kernel, &rows, NULL, 0, &length) == JITSOFTMAX_OK);
  EXPECT(length == strlen(text));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_kernel_specialization_for(kernel, &rows, NULL, 1, NULL)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_kernel_specialization_for(NULL, &rows, text, 1, NULL)));
  jitsoftmax_kernel_destroy(kernel);
}

static void refuses(jitsoftmax_engine* engine) {
  const jitsoftmax_problem problem = problem_of(JITSOFTMAX_SOFTMAX);
  float out[row_count * cols] = {0};
  const jitsoftmax_rows rows = rows_to(out);
  jitsoftmax_kernel* kernel = NULL;
  jitsoftmax_kernel* const untouched = (jitsoftmax_kernel*)(void*)out; /* any pointer that is not null */

  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_prepare(NULL, &problem, &kernel)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_prepare(engine, NULL, &kernel)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_prepare(engine, &problem, NULL)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_softmax(NULL, &problem, &rows, NULL)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_softmax(engine, NULL, &rows, NULL)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_softmax(engine, &problem, NULL, NULL)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_launch(NULL, &rows, NULL)));

  {
    static const int32_t wrong[] = {-1, 4, 255, 256, 65538}; /* the last is 2 in its low byte: a valid dtype */
    size_t i = 0;
    for (i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
      jitsoftmax_problem broken[4];
      size_t field = 0;
      for (field = 0; field < 4; ++field) broken[field] = problem;
      broken[0].in = wrong[i];
      broken[1].out = wrong[i];
      broken[2].op = wrong[i];
      broken[3].layout = wrong[i];
      for (field = 0; field < 4; ++field) {
        kernel = untouched;
        EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_prepare(engine, &broken[field], &kernel)));
        EXPECT(kernel == NULL);
      }
    }
  }
  {
    jitsoftmax_problem negative = problem;
    jitsoftmax_rows short_stride = rows;
    jitsoftmax_rows nowhere = rows;
    negative.cols = -1;
    short_stride.in_stride = cols - 1;
    nowhere.out = NULL;
    EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_softmax(engine, &negative, &rows, NULL)));
    EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_softmax(engine, &problem, &short_stride, NULL)));
    EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_softmax(engine, &problem, &nowhere, NULL)));
  }
}

static void engines_come_and_go(void) {
  const jitsoftmax_problem problem = problem_of(JITSOFTMAX_SOFTMAX);
  float out[row_count * cols] = {0};
  const jitsoftmax_rows rows = rows_to(out);
  jitsoftmax_engine* engine = NULL;
  jitsoftmax_kernel* kernel = NULL;

  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_create("host", NULL)));
  engine = (jitsoftmax_engine*)(void*)out;
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_create("the abacus", &engine)));
  EXPECT(engine == NULL);
  EXPECT(strstr(jitsoftmax_last_error(), "the abacus") != NULL);

  /* A kernel outlives its engine. */
  EXPECT(jitsoftmax_create("host", &engine) == JITSOFTMAX_OK);
  EXPECT(jitsoftmax_prepare(engine, &problem, &kernel) == JITSOFTMAX_OK);
  jitsoftmax_destroy(engine);
  EXPECT(jitsoftmax_launch(kernel, &rows, NULL) == JITSOFTMAX_OK);
  EXPECT(is_result(out, JITSOFTMAX_SOFTMAX));
  jitsoftmax_kernel_destroy(kernel);

  jitsoftmax_destroy(NULL);
  jitsoftmax_kernel_destroy(NULL);
}

int main(void) {
  jitsoftmax_engine* engine = NULL;
  EXPECT(strcmp(jitsoftmax_last_error(), "") == 0);
  EXPECT(jitsoftmax_create("host", &engine) == JITSOFTMAX_OK);
  EXPECT(engine != NULL);
  if (failures != 0) return 1; /* nothing to call */

  computes(engine);
  names_what_runs(engine);
  refuses(engine);
  jitsoftmax_destroy(engine);
  engines_come_and_go();
  return failures == 0 ? 0 : 1;
}
