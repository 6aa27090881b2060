#!/usr/bin/env bash
# Prepares a Debian 12 or Ubuntu 24.04 to build and run the project: packages by apt, and where there
# is no CUDA toolkit its headers and NVRTC as wheels, in build/cuda. Does only what is not done yet.
#
# Run it, or source it from a script, which then has
#   root               the repository
#   cuda_headers       the argument that tells CMake where CUDA's headers are
#   JITSOFTMAX_NVRTC   exported: the libnvrtc that the library is to open; one already set is kept
#
# JITSOFTMAX_IGNORE_TOOLKIT=1 takes the wheels even where there is a toolkit.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf -- '-- %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# The first toolkit that has both the headers and NVRTC, CUDA 12 or newer. Sets toolkit, toolkit_nvrtc.
find_toolkit() {
  [[ -z ${JITSOFTMAX_IGNORE_TOOLKIT:-} ]] || return 1
  local dir lib version
  for dir in "${CUDA_PATH:-}" "${CUDA_HOME:-}" /usr/local/cuda /opt/cuda /usr; do
    [[ -n $dir && -f $dir/include/cuda.h && -f $dir/include/nvrtc.h ]] || continue
    version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' "$dir/include/cuda.h")
    ((${version:-0} >= 12000)) || continue
    for lib in "$dir"/lib64/libnvrtc.so* "$dir"/lib/libnvrtc.so* "$dir"/lib/*-linux-gnu/libnvrtc.so*; do
      [[ -f $lib ]] || continue
      toolkit=$dir
      toolkit_nvrtc=$lib
      return 0
    done
  done
  return 1
}

install_packages() {
  local packages=("$@") missing=() package as_root=()
  if ! command -v apt-get >/dev/null; then
    say "No apt-get on this system. Needed, under their Debian names: ${packages[*]}"
    return 0
  fi
  for package in "${packages[@]}"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  ((${#missing[@]} > 0)) || return 0
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "root is needed once, to run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "Installing by apt: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "${missing[@]}"
}

# Unpacks the wheels into $root/build/cuda, as include/ and lib/.
fetch_cuda() {
  local wheels=$root/tools/cuda-wheels.txt cuda=$root/build/cuda partial=$root/build/cuda.partial wheel
  ! cmp -s "$wheels" "$cuda/cuda-wheels.txt" || return 0
  say "No CUDA toolkit is used. Fetching NVRTC and CUDA's headers (90 MB) from the Python package index into build/cuda:"
  grep -o '^nvidia-[^ ]*' "$wheels"
  rm -rf "$partial" && mkdir -p "$partial"
  # A virtual environment, since a distribution's python may lack pip or forbid its use.
  python3 -m venv "$partial/venv"
  "$partial/venv/bin/python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --require-hashes --requirement "$wheels" --dest "$partial/wheels"
  for wheel in "$partial"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$partial/unpacked"; done
  cp "$wheels" "$partial/unpacked/nvidia/cu13/"
  rm -rf "$cuda"
  mv "$partial/unpacked/nvidia/cu13" "$cuda"
  rm -rf "$partial"
}

packages=(g++ cmake ninja-build pkg-config python3 libxxhash-dev libspdlog-dev libcli11-dev nlohmann-json3-dev doctest-dev libboost-context-dev)
if find_toolkit; then
  install_packages "${packages[@]}"
  say "CUDA toolkit: $toolkit"
  cuda_headers=-DJITSOFTMAX_CUDA_INCLUDE_DIRS=$toolkit/include
  export JITSOFTMAX_NVRTC=${JITSOFTMAX_NVRTC:-$toolkit_nvrtc}
else
  python3 -c 'import ensurepip' 2>/dev/null || packages+=(python3-venv)
  install_packages "${packages[@]}" ca-certificates
  fetch_cuda
  cuda_headers=-DJITSOFTMAX_CUDA_INCLUDE_DIRS=$root/build/cuda/include
  export JITSOFTMAX_NVRTC=${JITSOFTMAX_NVRTC:-$(echo "$root"/build/cuda/lib/libnvrtc.so.[0-9]*)}
fi
say "NVRTC: $JITSOFTMAX_NVRTC"

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  say "Ready. To build by hand:"
  echo "cmake --preset release $cuda_headers && cmake --build --preset release"
  echo "export JITSOFTMAX_NVRTC=$JITSOFTMAX_NVRTC"
fi
