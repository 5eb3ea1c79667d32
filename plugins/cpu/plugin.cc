// The CPU plugin: ONNX's operators and Heddle's own for host memory. families.h lists its operator families; operators are declared in the
// files of their kernels.
#include "families.h"
#include "isa.h"

namespace heddle::cpu {

// The version; after the "+", as in semantic versioning, the instruction set level for which this machine's kernels are made.
static const char* version() {
  switch (isa()) {
    case Isa::v4:
      return "0.1.0+avx512";
    case Isa::v3:
      return "0.1.0+avx2";
    default:
      return "0.1.0+sse";
  }
}

}  // namespace heddle::cpu

HEDDLE_PLUGIN("cpu", heddle::cpu::version(), plugin) {
#define HEDDLE_ADD_FAMILY(name) heddle::cpu::add_##name(plugin);
  HEDDLE_CPU_FAMILIES(HEDDLE_ADD_FAMILY)
#undef HEDDLE_ADD_FAMILY
}
