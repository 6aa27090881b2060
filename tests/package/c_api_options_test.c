/* The C API: options are set by name or refused with what is known, structures may grow on either side, the log
 * reaches the callback, and every thread has its own message. */
#define _POSIX_C_SOURCE 200809L

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "expect.h"

static void tells_its_version(void) {
  char header[64];
  snprintf(header, sizeof header, "%d.%d.%d", JITSOFTMAX_VERSION_MAJOR, JITSOFTMAX_VERSION_MINOR,
           JITSOFTMAX_VERSION_PATCH);
  EXPECT(strcmp(header, JITSOFTMAX_VERSION) == 0);
  EXPECT(strcmp(jitsoftmax_version(), JITSOFTMAX_VERSION) == 0);
}

static void options_are_set_by_name(void) {
  static const char* const good[][2] = {{"device", "cuda:1"},       {"device", "host"},
                                        {"on_miss", "compile"},     {"on_miss", "fail"},
                                        {"masked_rows", "nan"},     {"masked_rows", "zero"},
                                        {"deterministic", "false"}, {"deterministic", "true"},
                                        {"variant", "v3"},          {"variant", ""},
                                        {"use_records", "true"},    {"use_records", "false"},
                                        {"cache_dir", ""},          {"cache_layers", "/a:/b"},
                                        {"cache_layers", ""},       {"cache_limit", "64MB"},
                                        {"cache_limit", "none"},    {"trusted_owners", "root,0"},
                                        {"on_miss", "background"},  {"specialize_after", "1"},
                                        {"workers", "0"},           {"max_kernels", "8"},
                                        {"max_kernels", "none"},    {"nvrtc", "/no/nvrtc"}};
  static const char* const bad[][2] = {{"device", "the abacus"}, {"on_miss", "perhaps"},    {"masked_rows", "one"},
                                       {"deterministic", "yes"}, {"use_records", ""},       {"cache_limit", "much"},
                                       {"cache_limit", "-1"},    {"specialize_after", "0"}, {"workers", "-1"},
                                       {"max_kernels", "0"},     {"workers", "2x"},         {"cache_limit", ""}};
  jitsoftmax_options* options = NULL;
  size_t i = 0;
  EXPECT(jitsoftmax_options_create(&options) == JITSOFTMAX_OK);
  for (i = 0; i < sizeof good / sizeof *good; ++i) {
    EXPECT(jitsoftmax_options_set(options, good[i][0], good[i][1]) == JITSOFTMAX_OK);
  }
  for (i = 0; i < sizeof bad / sizeof *bad; ++i) {
    EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_options_set(options, bad[i][0], bad[i][1])));
    EXPECT(strstr(jitsoftmax_last_error(), bad[i][1]) != NULL);
  }
  EXPECT(jitsoftmax_options_set(options, "programmatic_launch", "true") == JITSOFTMAX_OK);
  EXPECT(jitsoftmax_options_set(options, "programmatic_launch", "false") == JITSOFTMAX_OK);
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_options_set(options, "programmatic_launch", "1")));
  EXPECT(strstr(jitsoftmax_last_error(), "known: true, false") != NULL);
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_options_set(options, "speed", "high")));
  EXPECT(strstr(jitsoftmax_last_error(), "speed") != NULL && strstr(jitsoftmax_last_error(), "deterministic") != NULL);
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_options_set(options, NULL, "high")));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_options_set(options, "device", NULL)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_options_set(NULL, "device", "host")));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_options_set_log(NULL, NULL, NULL)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_options_create(NULL)));
  jitsoftmax_options_destroy(options);
  jitsoftmax_options_destroy(NULL);
}

/* They win over the environment, and the engine does as they say. */
static void options_have_effect(void) {
  const jitsoftmax_problem problem = {2, JITSOFTMAX_F32, JITSOFTMAX_F32, JITSOFTMAX_SOFTMAX, JITSOFTMAX_CONTIGUOUS};
  const float in[2] = {-INFINITY, -INFINITY};
  float out[2] = {5, 5};
  const jitsoftmax_rows rows = {out, in, 1, 0, 0, 1, 1.0F};
  jitsoftmax_options* options = NULL;
  jitsoftmax_engine* engine = NULL;
  int zero = 0;
  EXPECT(setenv("JITSOFTMAX_DEVICE", "cuda:99", 1) == 0);
  for (zero = 0; zero < 2; ++zero) {
    EXPECT(jitsoftmax_options_create(&options) == JITSOFTMAX_OK);
    EXPECT(jitsoftmax_options_set(options, "device", "host") == JITSOFTMAX_OK);
    EXPECT(jitsoftmax_options_set(options, "masked_rows", zero ? "zero" : "nan") == JITSOFTMAX_OK);
    EXPECT(jitsoftmax_create_with(options, &engine) == JITSOFTMAX_OK);
    jitsoftmax_options_destroy(options);
    EXPECT(jitsoftmax_softmax(engine, &problem, &rows, NULL) == JITSOFTMAX_OK);
    EXPECT(zero ? out[0] == 0 && out[1] == 0 : isnan(out[0]) && isnan(out[1]));
    jitsoftmax_destroy(engine);
  }
  EXPECT(setenv("JITSOFTMAX_DEVICE", "the abacus", 1) == 0);
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_options_create(&options)));
  EXPECT(options == NULL);
  EXPECT(unsetenv("JITSOFTMAX_DEVICE") == 0);
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_create_with(NULL, &engine)));
  EXPECT(engine == NULL);
}

/* What a caller with an older or a newer header passes. */
static void structures_may_grow(jitsoftmax_engine* engine) {
  struct {
    jitsoftmax_stats known;
    uint64_t added;
  } newer = {{0, 0, 0, 0, 0, 0, 0.0, 0.0, 0, 0, 0, 0}, 7};
  struct {
    jitsoftmax_warmup_request known;
    uint64_t added;
  } request;
  jitsoftmax_stats older;
  jitsoftmax_warmup_report report = {7, 7, 7};

  EXPECT(jitsoftmax_get_stats(engine, &newer.known, sizeof newer) == JITSOFTMAX_OK);
  EXPECT(newer.added == 0);
  memset(&older, 0xff, sizeof older);
  EXPECT(jitsoftmax_get_stats(engine, &older, offsetof(jitsoftmax_stats, disk_hits)) == JITSOFTMAX_OK);
  EXPECT(older.kernels == 0 && older.tuned_kernels == 0 && older.disk_hits == UINT64_MAX);
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_get_stats(NULL, &older, sizeof older)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_get_stats(engine, NULL, sizeof older)));

  memset(&request, 0, sizeof request);
  request.known.archs = "sm_90";
  EXPECT(jitsoftmax_warmup(engine, &request.known, sizeof request, &report, sizeof report) == JITSOFTMAX_OK);
  EXPECT(report.cached == 0 && report.compiled == 0 && report.failed == 0);
  request.added = 1;
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT,
                 jitsoftmax_warmup(engine, &request.known, sizeof request, &report, sizeof report)));
  EXPECT(jitsoftmax_warmup(engine, &request.known, offsetof(jitsoftmax_warmup_request, jobs), &report, sizeof report) ==
         JITSOFTMAX_OK);
}

static void wrong_requests_are_refused(jitsoftmax_engine* engine) {
  const jitsoftmax_problem problem = {64, JITSOFTMAX_F32, JITSOFTMAX_F32, JITSOFTMAX_SOFTMAX, JITSOFTMAX_CONTIGUOUS};
  jitsoftmax_warmup_request warmup;
  jitsoftmax_warmup_report warmed;
  jitsoftmax_tune_request tune;
  jitsoftmax_tune_report tuned;
  memset(&warmup, 0, sizeof warmup);
  EXPECT(
      refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_warmup(engine, &warmup, sizeof warmup, &warmed, sizeof warmed)));
  warmup.archs = "sm_90,pentium";
  EXPECT(
      refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_warmup(engine, &warmup, sizeof warmup, &warmed, sizeof warmed)));
  EXPECT(strstr(jitsoftmax_last_error(), "pentium") != NULL);
  warmup.archs = "sm_90";
  warmup.problem_count = 1;
  EXPECT(
      refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_warmup(engine, &warmup, sizeof warmup, &warmed, sizeof warmed)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_warmup(engine, NULL, 0, &warmed, sizeof warmed)));
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_warmup(engine, &warmup, sizeof warmup, NULL, 0)));

  memset(&tune, 0, sizeof tune);
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_autotune(engine, &tune, sizeof tune, &tuned, sizeof tuned)));
  tune.problem = &problem;
  tune.rows = 8; /* it measures a GPU, and this engine is the CPU's */
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_autotune(engine, &tune, sizeof tune, &tuned, sizeof tuned)));
  EXPECT(strstr(jitsoftmax_last_error(), "GPU") != NULL);
  tune.effort = 2;
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_autotune(engine, &tune, sizeof tune, &tuned, sizeof tuned)));
  EXPECT(strstr(jitsoftmax_last_error(), "effort") != NULL);
}

static void count_warnings_of(void* user, int32_t level, const char* message) {
  if (level == 2 && strstr(message, "writable") != NULL) ++*(int*)user;
}

/* A layer that anybody could have written to is worth a warning; then there is nothing to compile with. */
static void the_log_reaches_the_callback(void) {
  const jitsoftmax_problem problem = {64, JITSOFTMAX_F32, JITSOFTMAX_F32, JITSOFTMAX_SOFTMAX, JITSOFTMAX_CONTIGUOUS};
  char layer[] = "/tmp/jitsoftmax-c-api-XXXXXX";
  char directory[sizeof layer + 8];
  jitsoftmax_warmup_request request;
  jitsoftmax_warmup_report report;
  jitsoftmax_options* options = NULL;
  jitsoftmax_engine* engine = NULL;
  int warnings = 0;
  EXPECT(mkdtemp(layer) != NULL && chmod(layer, 0777) == 0);
  snprintf(directory, sizeof directory, "%s/cache", layer);
  EXPECT(jitsoftmax_options_create(&options) == JITSOFTMAX_OK);
  EXPECT(jitsoftmax_options_set(options, "cache_layers", layer) == JITSOFTMAX_OK);
  EXPECT(jitsoftmax_options_set(options, "cache_dir", directory) == JITSOFTMAX_OK);
  EXPECT(jitsoftmax_options_set(options, "nvrtc", "/no/nvrtc") == JITSOFTMAX_OK);
  EXPECT(jitsoftmax_options_set_log(options, count_warnings_of, &warnings) == JITSOFTMAX_OK);
  EXPECT(jitsoftmax_create_with(options, &engine) == JITSOFTMAX_OK);
  memset(&request, 0, sizeof request);
  request.problems = &problem;
  request.problem_count = 1;
  request.archs = "sm_90";
  EXPECT(refused(JITSOFTMAX_NO_COMPILER, jitsoftmax_warmup(engine, &request, sizeof request, &report, sizeof report)));
  EXPECT(strstr(jitsoftmax_last_error(), "/no/nvrtc") != NULL);
  EXPECT(warnings == 1);
  jitsoftmax_destroy(engine);
  jitsoftmax_options_destroy(options);
  EXPECT(rmdir(layer) == 0); /* and nothing was made in it */
}

static void* fails_elsewhere(void* unused) {
  jitsoftmax_engine* engine = NULL;
  EXPECT(strcmp(jitsoftmax_last_error(), "") == 0);
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_create("elsewhere", &engine)));
  return unused;
}

static void every_thread_has_its_message(void) {
  jitsoftmax_engine* engine = NULL;
  pthread_t thread;
  EXPECT(refused(JITSOFTMAX_INVALID_ARGUMENT, jitsoftmax_create("here", &engine)));
  EXPECT(pthread_create(&thread, NULL, fails_elsewhere, NULL) == 0);
  EXPECT(pthread_join(thread, NULL) == 0);
  EXPECT(strstr(jitsoftmax_last_error(), "'here'") != NULL);
}

int main(void) {
  jitsoftmax_engine* engine = NULL;
  tells_its_version();
  options_are_set_by_name();
  options_have_effect();
  the_log_reaches_the_callback();
  every_thread_has_its_message();
  EXPECT(jitsoftmax_create("host", &engine) == JITSOFTMAX_OK);
  if (engine == NULL) return 1;
  structures_may_grow(engine);
  wrong_requests_are_refused(engine);
  jitsoftmax_destroy(engine);
  return failures == 0 ? 0 : 1;
}
