# cmake -DNM=nm -DLIBRARY=libjitsoftmax.a -P archive.cmake
# Fails if the archive defines a name that another library may have too: in a program that links both, one of them
# would get the other's. All names are the library's own or instances of the standard library's templates.
execute_process(COMMAND "${NM}" -P -g --defined-only "${LIBRARY}" OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
# "jitsoftmax_create T 10 62". In what is mangled S begins std; DW.ref is of exception handling.
set(standard "^(DW\\.ref\\.)?(_Z+(T[ISV]|GV)?N?[VKR]*(S|9__gnu_cxx)|__gxx_personality_v0)")
string(REGEX MATCHALL "[^\n ]+ [A-Za-z] [^\n]*" lines "${table}")
set(own 0)
set(foreign "")
foreach(line IN LISTS lines)
  string(REGEX REPLACE " .*" "" name "${line}")
  if(name MATCHES "jitsoftmax")
    math(EXPR own "${own} + 1")
  elseif(name MATCHES "nlohmann|6spdlog|3fmt|XXH" OR NOT name MATCHES "${standard}")
    string(APPEND foreign "\n  ${name}")
  endif()
endforeach()
if(foreign OR own LESS 100)
  message(FATAL_ERROR "${LIBRARY} defines ${own} names of its own, and these that are not:${foreign}")
endif()
message(STATUS "${own} names are its own")
