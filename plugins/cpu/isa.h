// Instruction set levels: hot loops are compiled once per level (cmake/heddle_isa_sources.cmake) and chosen once per process.
//
// A file that is compiled several times puts everything into namespace heddle::cpu::HEDDLE_ISA and exports one constant table of function
// pointers:
//
//   // rows.h                                     // rows.isa.cc
//   struct RowTable { void (*sum)(...); };        namespace heddle::cpu::HEDDLE_ISA {
//   HEDDLE_DECLARE_ISA_TABLE(RowTable, rows)      static void sum(...) {...}
//                                                 extern const RowTable rows; const RowTable rows = {sum};
//   // elsewhere: isa_rows().sum(...)             }
//
// Such files include only headers whose functions are static or live in the same namespace (no <algorithm>, <string>, op.h).
// Everything here is pure or initialised once; any thread.
#pragma once

namespace heddle::cpu {

// x86-64-v2 (SSE4.2), -v3 (AVX2, FMA), -v4 (AVX-512 F BW CD DQ VL).
enum class Isa { v2, v3, v4 };

// The best level of this processor, lowered by HEDDLE_CPU_ISA=v2|v3|v4 (read once; other values change nothing).
Isa isa();
// False below x86-64-v2: the plugin can't run.
bool isa_supported();

// Static, so that each file has a copy and no level's code is shared with another.
template <class Table>
static const Table& isa_pick(const Table& v2, const Table& v3, const Table& v4) {
  switch (isa()) {
    case Isa::v4:
      return v4;
    case Isa::v3:
      return v3;
    default:
      return v2;
  }
}

}  // namespace heddle::cpu

// Declares the three tables `name` of type `type` and isa_<name>(), the one of this processor. Use inside namespace heddle::cpu.
#define HEDDLE_DECLARE_ISA_TABLE(type, name)         \
  namespace v2 {                                     \
  extern const type name;                            \
  }                                                  \
  namespace v3 {                                     \
  extern const type name;                            \
  }                                                  \
  namespace v4 {                                     \
  extern const type name;                            \
  }                                                  \
  [[maybe_unused]] static const type& isa_##name() { \
    return isa_pick(v2::name, v3::name, v4::name);   \
  }
