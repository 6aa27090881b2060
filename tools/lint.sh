#!/usr/bin/env bash
# clang-tidy, by .clang-tidy, over the library and the program; or over the files given. Minutes, so
# it is no part of tools/test.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"
command -v clang-tidy >/dev/null || fail "clang-tidy is not here: apt-get install clang-tidy"

cmake --preset release "$cuda_headers" >/dev/null
if (($# > 0)); then files=("$@"); else mapfile -t files < <(git ls-files 'src/*.cpp' 'tools/*.cpp'); fi
say "clang-tidy over ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" clang-tidy -p build/release --quiet \
  2> >(grep -v 'warnings\? generated' >&2)
