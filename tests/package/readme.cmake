# cmake -DREADME=README.md -DPROGRAM=readme_program.cpp -P readme.cmake
# Fails unless the first C++ block of the README is the program that the tests run.
file(READ "${README}" text)
file(READ "${PROGRAM}" program)
string(FIND "${text}" "```cpp\n${program}```\n" position)
string(FIND "${text}" "```cpp\n" first)
if(first EQUAL -1 OR NOT position EQUAL first)
  message(FATAL_ERROR "The first C++ block of ${README} differs from ${PROGRAM}: make them the same")
endif()
