#!/usr/bin/env bash
# Builds the fuzzers of tests/fuzz and runs each for so many seconds (60), as many at once as there are
# cores: tools/fuzz.sh [SECONDS [NAME...]]. What they find new is kept in build/fuzz/found/NAME, and what
# breaks a promise as build/fuzz/found/NAME-crash-...: run build/fuzz/tests/fuzz/fuzz_NAME on it, and add it
# to tests/fuzz/corpus/NAME, where every run of the tests has it from then on. Ends with 1 if there is any.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"
command -v clang++ >/dev/null || fail "clang++ is not here: apt-get install clang libclang-rt-dev"
seconds=${1:-60}
shift || true

names=("$@")
((${#names[@]} > 0)) || for corpus in tests/fuzz/corpus/*; do names+=("${corpus##*/}"); done
cmake --preset fuzz "$cuda_headers" >/dev/null
cmake --build --preset fuzz --target "${names[@]/#/fuzz_}"

fuzz() {
  local name=$1 found=build/fuzz/found/$1 log=build/fuzz/found/$1.log
  mkdir -p "$found"
  # Executions a second, and edges covered (cov), are in the lines that remain of the log.
  nice -n 19 "build/fuzz/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -max_len=4096 -timeout=20 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="$found-" "$found" "tests/fuzz/corpus/$name" >"$log" 2>&1 ||
    { printf '%s: BROKEN, see %s\n' "$name" "$log"; return 1; }
  printf '%s: %s, %s\n' "$name" "$(grep -o 'number_of_executed_units: .*' "$log")" "$(grep -o 'cov: [0-9]*' "$log" | tail -1)"
}
export -f fuzz
export seconds
printf '%s\0' "${names[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'fuzz "$1"' fuzz
