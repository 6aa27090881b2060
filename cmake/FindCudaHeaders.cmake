# Finds cuda.h and nvrtc.h, which is all of CUDA that the build needs: no nvcc, no libraries.
# Looks in JITSOFTMAX_CUDA_INCLUDE_DIRS, CUDA_PATH, CUDA_HOME and the usual places.
#
#   CudaHeaders::CudaHeaders   the include directories
find_path(CudaHeaders_CUDA_H cuda.h
  HINTS ${JITSOFTMAX_CUDA_INCLUDE_DIRS} ENV CUDA_PATH ENV CUDA_HOME
  PATHS /usr/local/cuda /opt/cuda PATH_SUFFIXES include)
find_path(CudaHeaders_NVRTC_H nvrtc.h
  HINTS ${JITSOFTMAX_CUDA_INCLUDE_DIRS} ENV CUDA_PATH ENV CUDA_HOME
  PATHS /usr/local/cuda /opt/cuda PATH_SUFFIXES include)
mark_as_advanced(CudaHeaders_CUDA_H CudaHeaders_NVRTC_H)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CudaHeaders REQUIRED_VARS CudaHeaders_CUDA_H CudaHeaders_NVRTC_H
  REASON_FAILURE_MESSAGE "Install CUDA's headers, or run tools/setup.sh, which fetches them as wheels")

if(CudaHeaders_FOUND AND NOT TARGET CudaHeaders::CudaHeaders)
  add_library(CudaHeaders::CudaHeaders INTERFACE IMPORTED)
  set_target_properties(CudaHeaders::CudaHeaders PROPERTIES
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${CudaHeaders_CUDA_H};${CudaHeaders_NVRTC_H}")
  set_target_properties(CudaHeaders::CudaHeaders PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${CudaHeaders_CUDA_H};${CudaHeaders_NVRTC_H}")
endif()
