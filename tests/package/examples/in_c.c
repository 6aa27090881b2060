/* From C: the softmax of one row on the CPU. On a GPU leave the device out, pass device memory and a stream. */
#include <jitsoftmax/jitsoftmax.h>
#include <stdio.h>

static int failed(void) {
  fprintf(stderr, "%s\n", jitsoftmax_last_error());
  return 1;
}

int main(void) {
  const float x[3] = {0.0F, 1.0F, 2.0F};
  float y[3] = {0.0F, 0.0F, 0.0F};
  const jitsoftmax_problem problem = {3, JITSOFTMAX_F32, JITSOFTMAX_F32, JITSOFTMAX_SOFTMAX, JITSOFTMAX_CONTIGUOUS};
  const jitsoftmax_rows rows = {y, x, 1, 0, 0, 1, 1.0F};
  jitsoftmax_options* options = NULL;
  jitsoftmax_engine* engine = NULL;
  jitsoftmax_kernel* kernel = NULL;

  if (jitsoftmax_options_create(&options) != JITSOFTMAX_OK) return failed();
  if (jitsoftmax_options_set(options, "device", "host") != JITSOFTMAX_OK) return failed();
  if (jitsoftmax_options_set(options, "deterministic", "true") != JITSOFTMAX_OK) return failed();
  if (jitsoftmax_create_with(options, &engine) != JITSOFTMAX_OK) return failed();
  jitsoftmax_options_destroy(options);

  if (jitsoftmax_prepare(engine, &problem, &kernel) != JITSOFTMAX_OK) return failed();
  if (jitsoftmax_launch(kernel, &rows, NULL) != JITSOFTMAX_OK) return failed();
  printf("%.4f %.4f %.4f\n", (double)y[0], (double)y[1], (double)y[2]);

  jitsoftmax_kernel_destroy(kernel);
  jitsoftmax_destroy(engine);
  return 0;
}
