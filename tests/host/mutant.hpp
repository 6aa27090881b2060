// Which mutant of the kernels runs, where the mutation check has compiled all of them into one program.
#pragma once

namespace jitsoftmax::host_test {

inline int mutant = -1;  // none: the kernels as they are
inline bool is_mutant(int number) { return mutant == number; }

}  // namespace jitsoftmax::host_test
