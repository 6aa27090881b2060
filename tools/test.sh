#!/usr/bin/env bash
# Sets the machine up, checks the tree, and builds and runs every test: those that need no GPU under
# the address and undefined-behaviour sanitizers, then all of them in a release build. Tests that
# need a GPU report themselves as skipped where there is none.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"

tools/check_tree.sh

# Warnings are errors in both: the optimizer of the release build sees more of them.
for preset in sanitize release; do
  cmake --preset "$preset" "$cuda_headers" -DJITSOFTMAX_WERROR=ON
  cmake --build --preset "$preset"
  ctest --preset "$preset" --parallel "$(nproc)"
done
