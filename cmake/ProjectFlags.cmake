# jitsoftmax_flags(TARGET): the warnings, sanitizers and arithmetic rules that all our code is
# compiled with. Arithmetic is what is written: no contraction, no fast-math (it would switch the
# host process to flush-to-zero).
# GCC 12 warns of overlapping copies inside std::string that cannot happen (GCC bug 105651).
set(jitsoftmax_restrict_is_wrong
  $<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>)
function(jitsoftmax_flags target)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -ffp-contract=off
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,${jitsoftmax_restrict_is_wrong}>:-Wno-restrict>
    $<$<BOOL:${JITSOFTMAX_WERROR}>:-Werror>)
  if(JITSOFTMAX_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${JITSOFTMAX_SANITIZE} -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer -g1)
    target_link_options(${target} PRIVATE -fsanitize=${JITSOFTMAX_SANITIZE})
  endif()
endfunction()
