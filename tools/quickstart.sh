#!/usr/bin/env bash
# From a clean checkout to a softmax: sets the machine up, builds the library and the program, makes
# a file of logits and runs the program on it, checked against a softmax in double precision.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$root"

cmake --preset release "$cuda_headers"
cmake --build --preset release --target jitsoftmax_static jitsoftmax_shared jitsoftmax_program

files=build/quickstart
mkdir -p "$files"
python3 tools/make_input.py 512 4096 f32 "$files/logits.npy"
build/release/tools/jitsoftmax run "$files/logits.npy" -o "$files/probabilities.npy" --verify

cat <<END

program   build/release/tools/jitsoftmax
library   build/release/src/libjitsoftmax.a, libjitsoftmax.so; headers in include/
input     $files/logits.npy          512 x 4096 f32
output    $files/probabilities.npy   its softmax, row by row
NVRTC     export JITSOFTMAX_NVRTC=$JITSOFTMAX_NVRTC
END
