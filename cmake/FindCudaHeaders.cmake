# Finds cuda.h and nvrtc.h, which is all of CUDA that the build needs: no nvcc, no libraries.
#
#   JITSOFTMAX_CUDA_INCLUDE_DIRS   where they are; if set, no other place is looked at
#
# Otherwise looks in CUDA_PATH, CUDA_HOME, the usual places, and where tools/setup.sh puts them.
#
#   CudaHeaders::CudaHeaders   the include directories
#   CudaHeaders_VERSION        e.g. 13.0
set(JITSOFTMAX_CUDA_INCLUDE_DIRS "" CACHE STRING "Where cuda.h and nvrtc.h are; empty: the usual places")

if(JITSOFTMAX_CUDA_INCLUDE_DIRS)
  set(where PATHS ${JITSOFTMAX_CUDA_INCLUDE_DIRS} NO_DEFAULT_PATH)
  set(advice "Not in JITSOFTMAX_CUDA_INCLUDE_DIRS (${JITSOFTMAX_CUDA_INCLUDE_DIRS}): correct it, or set it to nothing")
else()
  set(where HINTS ENV CUDA_PATH ENV CUDA_HOME
            PATHS /usr/local/cuda /opt/cuda "${CMAKE_CURRENT_LIST_DIR}/../build/cuda" PATH_SUFFIXES include)
  set(advice "Install CUDA's headers (12.0 or newer), or run tools/setup.sh, which fetches them as wheels")
endif()
# Not cached: a change of JITSOFTMAX_CUDA_INCLUDE_DIRS must take effect in an existing build folder.
find_path(CudaHeaders_CUDA_H cuda.h ${where} NO_CACHE)
find_path(CudaHeaders_NVRTC_H nvrtc.h ${where} NO_CACHE)

if(CudaHeaders_CUDA_H)
  file(STRINGS "${CudaHeaders_CUDA_H}/cuda.h" version REGEX "^#define CUDA_VERSION [0-9]+")
  string(REGEX MATCH "[0-9]+" version "${version}")
  math(EXPR major "${version} / 1000")
  math(EXPR minor "${version} % 1000 / 10")
  set(CudaHeaders_VERSION "${major}.${minor}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaHeaders
  REQUIRED_VARS CudaHeaders_CUDA_H CudaHeaders_NVRTC_H
  VERSION_VAR CudaHeaders_VERSION
  REASON_FAILURE_MESSAGE "${advice}")

if(CudaHeaders_FOUND AND NOT TARGET CudaHeaders::CudaHeaders)
  add_library(CudaHeaders::CudaHeaders INTERFACE IMPORTED)
  set_target_properties(CudaHeaders::CudaHeaders PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${CudaHeaders_CUDA_H};${CudaHeaders_NVRTC_H}")
endif()
