// load_or_replace: code that the cache had and that the driver refuses is a miss, once.
#pragma once

#include <string>
#include <utility>

#include "api/code.hpp"
#include "cuda/driver.hpp"
#include "jit/cubin.hpp"
#include "plan/specialization.hpp"

namespace jitsoftmax {

// load(cubin) of `code`, or of what Code::get_instead() has for it. `load` throws cuda::RefusedCode for what
// the driver does not take: of code that has just been compiled, that is the error.
template <class Load>
auto load_or_replace(Code& code, Code::Result result, const plan::Specialization& specialization, const Arch& arch,
                     Code::Purpose purpose, Load load) -> decltype(load(result.cubin)) {
  while (true) {
    std::string reason;
    try {
      return load(result.cubin);
    } catch (const cuda::RefusedCode& refused) {
      if (result.compiled) throw;
      reason = refused.what();
    }
    result = code.get_instead(result, specialization, arch, purpose, reason);
  }
}

}  // namespace jitsoftmax
