/* What the tests in C share: a check that says where and why, and goes on. */
#ifndef JITSOFTMAX_TESTS_EXPECT_H
#define JITSOFTMAX_TESTS_EXPECT_H

#include <jitsoftmax/jitsoftmax.h>
#include <stdio.h>
#include <string.h>

static int failures = 0;

static void expect(int holds, const char* what, const char* file, int line) {
  if (holds) return;
  fprintf(stderr, "%s:%d: not so: %s; the last error is \"%s\"\n", file, line, what, jitsoftmax_last_error());
  ++failures;
}
#define EXPECT(condition) expect((condition) != 0, #condition, __FILE__, __LINE__)

/* A failure leaves a message. `status` is what was expected and what came. */
static inline int refused(jitsoftmax_status expected, jitsoftmax_status got) {
  return got == expected && strlen(jitsoftmax_last_error()) > 0;
}

#endif
