#!/usr/bin/env bash
# warmed_layer.sh JITSOFTMAX PROGRAM [ARCH]: ships compiled kernels in an image that has no compiler.
set -euo pipefail
jitsoftmax=$1 program=$2 arch=${3:-sm_90}
image=$(mktemp -d)
trap 'rm -rf "$image"' EXIT
printf '4096 f32\n' > "$image/shapes.txt"

# Where the image is built: NVRTC, and no GPU.
status=0
JITSOFTMAX_CACHE_DIR=$image/kernels "$jitsoftmax" warmup --shapes "$image/shapes.txt" --arch "$arch" > /dev/null || status=$?
((status != 3)) || { echo "skipped: no NVRTC here"; exit 77; }
((status == 0))

# A last step of the build: is everything there? It reads every entry as a launch will.
JITSOFTMAX_CACHE_DIR=$image/none JITSOFTMAX_CACHE_LAYERS=$image/kernels \
  "$jitsoftmax" cache verify --shapes "$image/shapes.txt" --arch "$arch" > /dev/null
echo "the layer is complete"

# Where the image runs: a GPU, and no NVRTC.
JITSOFTMAX_NVRTC=/nowhere "$program" "$image/kernels"
