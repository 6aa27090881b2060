# Finds xxhash.h (libxxhash-dev). It is used as a header only, so that no symbol of it leaves the
# library and nothing is linked.
#
#   xxHash::xxHash   the include directory
find_path(xxHash_INCLUDE_DIR xxhash.h)
mark_as_advanced(xxHash_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(xxHash REQUIRED_VARS xxHash_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "Install libxxhash-dev, or run tools/setup.sh")

if(xxHash_FOUND AND NOT TARGET xxHash::xxHash)
  add_library(xxHash::xxHash INTERFACE IMPORTED)
  set_target_properties(xxHash::xxHash PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${xxHash_INCLUDE_DIR}")
endif()
