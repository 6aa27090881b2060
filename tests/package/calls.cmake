# cmake -DNM=nm -DLIBRARY=libjitsoftmax.so -P calls.cmake
# Fails if the library refers to anything that ends the process, starts another, or prints.
execute_process(COMMAND "${NM}" -D -P --undefined-only "${LIBRARY}" OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
set(ends "exit|_exit|_Exit|quick_exit|abort|raise|kill")
set(starts "system|popen|v?fork|posix_spawnp?|exec[lv]p?e?|execveat|fexecve|clone")
set(prints "(__)?v?f?printf(_chk)?|puts|fputs|putchar|putc|fputc|fwrite|perror|psignal|syslog|stdout|stderr|_ZSt4(cout|cerr|clog)")
string(REGEX MATCHALL "(^|\n)(${ends}|${starts}|${prints})(@[^ \n]*)? [^\n]*" found "${table}")
if(found)
  message(FATAL_ERROR "${LIBRARY} refers to what it must never call:${found}")
endif()
if(NOT table MATCHES "(^|\n)dlopen[@ ]")
  message(FATAL_ERROR "nm does not show what ${LIBRARY} refers to:\n${table}")
endif()
