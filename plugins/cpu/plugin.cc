// The CPU plugin: ONNX's operators and Heddle's own for host memory. families.h is the table of what it brings; operators are declared
// beside their kernels.
#include "families.h"

HEDDLE_PLUGIN("cpu", "0.1.0", plugin) {
#define HEDDLE_ADD_FAMILY(name) heddle::cpu::add_##name(plugin);
  HEDDLE_CPU_FAMILIES(HEDDLE_ADD_FAMILY)
#undef HEDDLE_ADD_FAMILY
}
