#!/usr/bin/env bash
# Checks the rules of the house that a compiler does not: what may include what, where assembly may
# be, what the library must never call, and the format. Exits 1 after listing every breach.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
breaches=0

# rule TEXT < lines that break it
rule() {
  local found
  found=$(cat)
  [[ -n $found ]] || return 0
  printf '%s\n' "$1" "$found" '' >&2
  breaches=1
}

# code PATTERN FILE...: the lines outside of // comments that match, as file:line:text
code() {
  local pattern=$1 file
  shift
  for file in "$@"; do
    [[ -f $file ]] || continue
    sed 's,//.*,,' "$file" | { grep -nE -- "$pattern" || true; } | sed "s,^,$file:,"
  done
}

shopt -s globstar nullglob
templates=(kernel_templates/*)
public=(include/**/*.h include/**/*.hpp)
library=(src/**/*.hpp src/**/*.cpp)

siblings=$(printf '%s\n' "${templates[@]##*/}" | sed 's,\.,\\.,g' | paste -sd '|')
rule "Kernel templates include nothing but each other: NVRTC is given no other file." \
  < <(code '^ *# *include' "${templates[@]}" | { grep -vE "include \"($siblings)\" *$" || true; })
rule "Assembly belongs in kernel_templates/device.cuh." \
  < <(code '\b(asm|__asm__)\b' "${templates[@]}" "${library[@]}" | { grep -v '^kernel_templates/device\.cuh:' || true; })
rule "Public headers include the standard library and each other, nothing else." \
  < <(code '^ *# *include' "${public[@]}" |
      { grep -vE 'include <(jitsoftmax/[a-z_]+\.(h|hpp)|[a-z_]+|std[a-z]+\.h)> *$' || true; })
rule "The library uses none of the program's libraries." \
  < <(code '# *include <(spdlog|fmt|CLI|doctest)\b' "${library[@]}")
rule "JSON is read and written in src/tune/record_text.cpp." \
  < <(code '# *include <nlohmann\b' "${library[@]}" | { grep -v '^src/tune/record_text\.cpp:' || true; })
rule "The library prints nothing." \
  < <(code '\b(std::(cout|cerr|clog)|v?f?printf|puts|fputs|perror)\b' "${library[@]}")
rule "The library ends no process and starts none." \
  < <(code '(^|[^_.>[:alnum:]])(exit|_exit|_Exit|quick_exit|abort|terminate|system|popen|execvp?|fork) *\(' "${library[@]}")
rule "The environment is read in src/base/environment.cpp." \
  < <(code '\bgetenv\b' "${library[@]}" | { grep -v '^src/base/environment\.cpp:' || true; })

# Another version formats otherwise, so only the one that the tree is formatted with has a say.
if command -v clang-format >/dev/null && clang-format --version | grep -q 'version 14\.'; then
  sources=(include/**/*.{h,hpp} src/**/*.{hpp,cpp} tools/**/*.{hpp,cpp} tests/**/*.{hpp,cpp,c} kernel_templates/*.cuh)
  rule "Run clang-format -i on these files." \
    < <(clang-format --dry-run --Werror "${sources[@]}" 2>&1 | { grep -oE '^[^ :]+:[0-9]+' || true; } | cut -d: -f1 | sort -u)
else
  echo "-- The format is not checked: no clang-format 14 here"
fi

((breaches == 0)) && echo "-- The tree keeps its rules"
exit "$breaches"
