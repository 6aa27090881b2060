#!/usr/bin/env bash
# foreign.sh WORK WAY...: builds foreign/ against the library, and runs it, where there is no nvcc. WAY is
#
#   install BUILD                    installs the build tree into WORK, for the next two
#   find_package LIBRARY PREFIX      LIBRARY is static or shared, PREFIX an installed tree
#   pkg_config LIBRARY PREFIX
#   add_subdirectory SOURCE HEADERS  HEADERS are CUDA's
#   deb BUILD                        packs the build tree and unpacks the package
#
# CC, CXX and GENERATOR are those of the build that is tested.
set -euo pipefail
foreign=$(cd "$(dirname "${BASH_SOURCE[0]}")/foreign" && pwd)
examples=$foreign/../examples
work=$1 way=$2
shift 2
rm -rf "$work" && mkdir -p "$work"

fail() { printf 'foreign: %s\n' "$*" >&2; exit 1; }

# The user's machine: no nvcc, as far as it is not where everything else is, and no place where CUDA might be said to be.
path=
IFS=: read -ra directories <<< "$PATH"
for directory in "${directories[@]}"; do
  [[ -x $directory/nvcc && ! -x $directory/grep ]] || path+=${path:+:}$directory
done
export PATH=$path JITSOFTMAX_DEVICE=host
unset CUDA_PATH CUDA_HOME CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH LIBRARY_PATH LD_LIBRARY_PATH CUDACXX
! command -v nvcc || echo "-- nvcc stays on the path"

# run_all LIBRARY DIRECTORY: all four programs are linked with that one, say what they should, and nothing else.
run_all() {
  local library=$1 expect=$foreign/../expect_output.sh program linked
  shift
  for program in "$1"/{c99,cxx17,cxx20,own_logger}; do
    linked=static
    [[ $(ldd "$program") != *libjitsoftmax* ]] || linked=shared
    [[ $linked == "$library" ]] || fail "$program is linked with the $linked library"
  done
  "$expect" "0.0900 0.2447 0.6652" "$1/c99"
  "$expect" "0.000244141" "$1/cxx17"
  "$expect" "0.000244141" "$1/cxx20"
  "$expect" "half of 1 is 1 0 the program's own" "$1/own_logger"
}

# build_by_cmake LIBRARY ARGUMENT...
build_by_cmake() {
  local library=$1 target=jitsoftmax
  shift
  [[ $library == static ]] || target=shared
  cmake -G "$GENERATOR" -S "$foreign" -B "$work/build" "-DCMAKE_C_COMPILER=$CC" "-DCMAKE_CXX_COMPILER=$CXX" \
    -DFOREIGN_TARGET="jitsoftmax::$target" "$@"
  cmake --build "$work/build" --parallel 2
  run_all "$library" "$work/build"
}

# A user of an installed library needs nothing of what it was built with.
by_find_package() {
  local arguments=(-DFOREIGN_METHOD=find_package "-DCMAKE_PREFIX_PATH=$2"
    -DCMAKE_DISABLE_FIND_PACKAGE_{CudaHeaders,CUDAToolkit,nlohmann_json,xxHash,spdlog}"=ON")
  build_by_cmake "$1" "${arguments[@]}"
  [[ $1 == static ]] || return 0
  cmake -G "$GENERATOR" -S "$foreign" -B "$work/c" "-DCMAKE_C_COMPILER=$CC" -DFOREIGN_C_ALONE=ON \
    -DFOREIGN_TARGET=jitsoftmax::static "${arguments[@]}"
  cmake --build "$work/c"
  "$foreign/../expect_output.sh" "0.0900 0.2447 0.6652" "$work/c/c99"
}

by_pkg_config() {
  local library=$1 prefix=$2 flags static=() by
  if [[ $library == static ]]; then
    # Beside a shared library the linker would take that.
    cp -r "$prefix" "$work/prefix"
    prefix=$work/prefix
    find "$prefix" -name 'libjitsoftmax.so*' -delete
    static=(--static)
  fi
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name jitsoftmax.pc)")
  export PKG_CONFIG_PATH
  pkg-config --exact-version="$(sed -n 's/.*JITSOFTMAX_VERSION "\(.*\)".*/\1/p' "$prefix/include/jitsoftmax/version.h")" jitsoftmax
  read -ra flags <<< "$(pkg-config "${static[@]}" --cflags --libs jitsoftmax)"
  [[ $library == static ]] || flags+=("-Wl,-rpath,$(pkg-config --variable=libdir jitsoftmax)")
  "$CC" -std=c99 "$examples/in_c.c" "${flags[@]}" -o "$work/c99"
  for by in 17 20; do "$CXX" -std=c++$by "$examples/readme_program.cpp" "${flags[@]}" -o "$work/cxx$by"; done
  "$CXX" -std=c++17 -rdynamic "$foreign/own_logger.cpp" "${flags[@]}" -o "$work/own_logger"
  run_all "$library" "$work"
}

case $way in
  install)
    cmake --install "$1" --prefix "$work"
    source_directory=$(cd "$foreign/../../.." && pwd)
    ! grep -rl -e "$source_directory" -e "$1" --include='*.cmake' --include='*.pc' "$work" || fail "these name a folder of the build"
    ;;
  find_package) by_find_package "$@" ;;
  pkg_config) by_pkg_config "$@" ;;
  add_subdirectory)
    build_by_cmake static -DFOREIGN_METHOD=add_subdirectory "-DFOREIGN_SOURCE=$1" "-DJITSOFTMAX_CUDA_INCLUDE_DIRS=$2" \
      -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0
    ;;
  deb)
    cpack -G DEB --config "$1/CPackConfig.cmake" -B "$work"
    package=$(echo "$work"/*.deb)
    dpkg-deb --info "$package"
    dpkg-deb --extract "$package" "$work/root"
    if command -v dpkg-shlibdeps > /dev/null; then
      [[ $(dpkg-deb --field "$package" Depends) == *libstdc++6* ]] || fail "the package does not say what it depends on"
    fi
    if [[ -e $work/root/usr/bin/jitsoftmax ]]; then
      "$work/root/usr/bin/jitsoftmax" --version
    fi
    by_find_package shared "$work/root/usr"
    ;;
  *) fail "unknown way $way" ;;
esac
