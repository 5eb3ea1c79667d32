// The choice of the instruction set level: processor first, then HEDDLE_CPU_ISA.
#include "isa.h"

#include <cstdlib>
#include <cstring>

namespace heddle::cpu {
namespace {

Isa detect() {
  __builtin_cpu_init();
  Isa best = Isa::v2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) best = Isa::v3;
  if (best == Isa::v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    best = Isa::v4;
  if (const char* wanted = std::getenv("HEDDLE_CPU_ISA")) {
    if (std::strcmp(wanted, "v2") == 0) best = Isa::v2;
    if (std::strcmp(wanted, "v3") == 0 && best == Isa::v4) best = Isa::v3;
  }
  return best;
}

}  // namespace

Isa isa() {
  static const Isa chosen = detect();
  return chosen;
}

bool isa_supported() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
}

}  // namespace heddle::cpu
