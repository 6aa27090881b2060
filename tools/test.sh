#!/usr/bin/env bash
# Sets the machine up, checks the tree, and builds and runs every test: those that need no GPU under
# the address and undefined-behaviour sanitizers, then all of them in a release build. Tests that
# need a GPU report themselves as skipped where there is none.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"

tools/check_tree.sh

# Warnings are errors in the release build: what sanitizers add to the code makes false ones.
for preset in sanitize release; do
  werror=$([[ $preset == release ]] && echo ON || echo OFF)
  cmake --preset "$preset" "$cuda_headers" -DJITSOFTMAX_WERROR="$werror"
  cmake --build --preset "$preset"
  ctest --preset "$preset" --parallel "$(nproc)"
done
