/* The C API fills a cache without a GPU: every item is told as it is done, counted at the end, and found again. */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <string.h>

#include "expect.h"

enum { skipped = 77 };

typedef struct told {
  uint64_t items;
  uint64_t compiled;
  uint64_t stop_after;
} told;

static int32_t tell(void* user, const jitsoftmax_warmup_item* item, uint64_t done, uint64_t total) {
  told* const t = (told*)user;
  ++t->items;
  if (item->outcome == JITSOFTMAX_WARMUP_COMPILED) ++t->compiled;
  EXPECT(item->problem->cols == 1024 && item->problem->in == JITSOFTMAX_BF16);
  EXPECT(strcmp(item->arch, "sm_90") == 0 || strcmp(item->arch, "sm_100") == 0);
  EXPECT(strstr(item->specialization, "Static<1024>") != NULL);
  EXPECT(strcmp(item->error, "") == 0 && item->seconds >= 0);
  EXPECT(done == t->items && done <= total);
  return t->items != t->stop_after;
}

int main(void) {
  const jitsoftmax_problem problem = {1024, JITSOFTMAX_BF16, JITSOFTMAX_BF16, JITSOFTMAX_SOFTMAX,
                                      JITSOFTMAX_CONTIGUOUS};
  char directory[] = "/tmp/jitsoftmax-c-api-XXXXXX";
  char removal[sizeof directory + 16];
  told t = {0, 0, 1};
  jitsoftmax_warmup_request request = {&problem, 1, "sm_90,sm_100", 1, tell, &t};
  jitsoftmax_warmup_report report = {0, 0, 0};
  jitsoftmax_stats stats;
  jitsoftmax_options* options = NULL;
  jitsoftmax_engine* engine = NULL;
  jitsoftmax_status status = JITSOFTMAX_OK;
  uint64_t total = 0;

  EXPECT(mkdtemp(directory) != NULL);
  EXPECT(jitsoftmax_options_create(&options) == JITSOFTMAX_OK);
  EXPECT(jitsoftmax_options_set(options, "cache_dir", directory) == JITSOFTMAX_OK);
  EXPECT(jitsoftmax_options_set(options, "cache_layers", "") == JITSOFTMAX_OK);
  EXPECT(jitsoftmax_create_with(options, &engine) == JITSOFTMAX_OK);
  jitsoftmax_options_destroy(options);

  /* Stopped by the callback after the first. */
  status = jitsoftmax_warmup(engine, &request, sizeof request, &report, sizeof report);
  if (status == JITSOFTMAX_NO_COMPILER) {
    printf("skipped: %s\n", jitsoftmax_last_error());
    return skipped;
  }
  EXPECT(status == JITSOFTMAX_OK);
  total = report.compiled + report.failed;
  EXPECT(report.compiled == 1 && report.failed >= 1 && report.cached == 0 && t.items == 1);

  t.stop_after = 0;
  t.items = 0;
  EXPECT(jitsoftmax_warmup(engine, &request, sizeof request, &report, sizeof report) == JITSOFTMAX_OK);
  EXPECT(report.cached == 1 && report.compiled == total - 1 && report.failed == 0);
  EXPECT(t.items == total && t.compiled == total);

  EXPECT(jitsoftmax_get_stats(engine, &stats, sizeof stats) == JITSOFTMAX_OK);
  EXPECT(stats.compiles == total && stats.compile_seconds > 0);
  jitsoftmax_destroy(engine);

  snprintf(removal, sizeof removal, "rm -r '%s'", directory);
  EXPECT(system(removal) == 0);
  return failures == 0 ? 0 : 1;
}
