#!/usr/bin/env bash
# expect_output.sh EXPECTED COMMAND...: the command ends with 0, prints EXPECTED (with \n for its line ends), and says
# nothing on stderr. "Skipped", 77, stays that.
set -euo pipefail
expected=$(printf '%b' "$1")
shift
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
status=0
output=$("$@" 2> "$errors") || status=$?
if ((status == 77)); then
  printf '%s\n' "$output"
  exit 77
fi
if ((status != 0)) || [[ $output != "$expected" || -s $errors ]]; then
  printf 'exit code %d\n-- stdout:\n%s\n-- stdout should be:\n%s\n-- stderr, which should be empty:\n' "$status" "$output" "$expected"
  cat "$errors"
  exit 1
fi
