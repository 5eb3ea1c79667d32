// heddle::Pointwise, called with the programs of pointwise_programs.cc.
#include <algorithm>
#include <set>

#include "conformance/cases/pointwise_programs.h"
#include "conformance/reference.h"

namespace heddle::conformance {
namespace reference_pointwise_program {
namespace {

// The inputs have the given shapes, in turn.
std::string call_of(const PointwiseProgram& program, const std::string& dtype, const Names& shapes) {
  std::string text;
  for (size_t i = 0; i < program.ranges.size(); ++i) {
    text += (i > 0 ? ", " : "") + dtype + shapes[i % shapes.size()];
    if (!program.ranges[i].empty()) text += " = " + program.ranges[i];
  }
  return text + "; program=\"" + program.text + "\"";
}

void add_calls(const PointwiseProgram& program, Cases& cases) {
  for (const std::string& dtype : program.dtypes) {
    const auto add = [&](Kind kind, const Names& shapes) { cases.push_back({kind, call_of(program, dtype, shapes)}); };
    add(Kind::odd, {"[]"});
    add(Kind::odd, {"[17]"});
    add(Kind::odd, {"[3,5,17]"});
    add(Kind::odd, {"[1031]"});  // more than a block
    add(Kind::empty, {"[3,0]"});
    if (program.ranges.size() < 2) continue;
    add(Kind::broadcast, {"[3,1,5]", "[7,1]", "[]"});
    add(Kind::broadcast, {"[1]", "[3,131]", "[131]"});
  }
  const bool of_floats = program.takes_special && program.dtypes.front() == "f16";
  if (of_floats && program.ranges.size() == 1)
    cases = joined({cases, over_special(Kind::odd, "T[18] = SPECIAL; program=\"" + std::string(program.text) + "\"")});
  if (of_floats && program.ranges.size() == 2)
    cases =
        joined({cases, over_special(Kind::broadcast, "T[18,1] = SPECIAL, T[18] = SPECIAL; program=\"" + std::string(program.text) + "\"")});
}

// Ranks, large tensors, other dtypes of the output, bools beside numbers, no inputs.
Cases particular() {
  Cases cases = {
      {Kind::rank, "f32[1,2,1,2,1,2,1,3], f32[2,1,2,1,2,1,2,1], f32[2,1,1]; program=\"x0 * x1 + x2\""},
      {Kind::rank, "i32[1,2,1,2,1,2,1,3], i32[2,1,2,1,2,1,2,1]; program=\"x0 + x1\""},
      {Kind::odd, "; program=\"2 + 3\", dtype=3"},
      {Kind::odd, "; program=\"2 + 3\", dtype=7"},
      {Kind::odd, "bool[7], f32[7] = -3..3; program=\"select(x0, x1, -x1)\""},
      {Kind::broadcast, "bool[3,1], i64[5] = -9..9; program=\"select(x0, x1, -x1)\""},
      {Kind::broadcast, "f16[3,1], bool[67]; program=\"x0 * x1\""},
      {Kind::large, "bool[301,1], f32[301,257] = -3..3; program=\"select(x0, x1, -x1)\""},
  };
  for (const char* dtype : {"f16", "f32", "f64", "i8", "i64", "u64"}) {
    const std::string t = dtype;
    cases.push_back({Kind::large, t + "[301,257], " + t + "[257], " + t + "[301,1]; program=\"x0 * x1 + x2\""});
    cases.push_back({Kind::large, t + "[61,1,33], " + t + "[41,33]; program=\"x0 + x1\""});
    cases.push_back({Kind::large, t + "[301,257] = 0..4, " + t + "[301,257] = 0..4; program=\"lt(x0, x1)\""});
  }
  cases = joined(
      {cases, each({"f16", "f32", "f64"}, Kind::large, "T[301,257] = -4..4; program=\"0.5 * x0 * (1 + erf(0.7071067811865476 * x0))\"")});
  // The numbers of f16 bf16 f32 f64, i8 ... u64, bool in dtype=.
  for (int to = static_cast<int>(DType::f16); to <= static_cast<int>(DType::boolean); ++to) {
    const std::string end = ", dtype=" + std::to_string(to);
    const Names numbers = joined({float_names, signed_integer_names, unsigned_integer_names});
    cases = joined({cases, each(numbers, Kind::odd, "T[37] = 0..9, T[37] = 0..9; program=\"x0 + x1\"" + end),
                    each(numbers, Kind::odd, "T[3,131] = 0..4, T[3,131] = 0..4; program=\"lt(x0, x1)\"" + end),
                    each({"f32"}, Kind::large, "T[301,257] = 0..9; program=\"x0\"" + end)});
  }
  return cases;
}

const PointwiseProgram& program_of(const std::string& text) {
  static const PointwiseProgram constant = {"2 + 3", [](const Inputs&, DType) { return Number(5); }, {}, {}};
  for (const PointwiseProgram& program : pointwise_programs())
    if (text == program.text) return program;
  return constant;
}

// Computes in the arithmetic of the inputs, f32 for 16-bit floats; a result of another dtype is converted from that.
std::vector<Numbers> evaluated(const Call& c) {
  const PointwiseProgram& program = program_of(c.s("program", ""));
  const auto given = static_cast<DType>(c.i("dtype", static_cast<int>(DType::none)));
  DType arithmetic = DType::boolean;  // with only bools, or no inputs: that of the output
  for (const auto& input : c.inputs)
    if (input->dtype != DType::boolean) arithmetic = input->dtype;
  const DType dtype = given != DType::none ? given : program.is_predicate ? DType::boolean : arithmetic;
  if (arithmetic == DType::boolean) arithmetic = dtype;
  Numbers result = elementwise(c, dtype, [&](const Inputs& x) {
    const Number value = program.of(x, arithmetic);
    if (program.is_predicate || dtype == arithmetic) return value;
    return rounded(arithmetic == DType::f16 || arithmetic == DType::bf16 ? DType::f32 : arithmetic, value);
  });
  if (program.scale) result.scale = elementwise(c, dtype, [&](const Inputs& x) { return program.scale(x); }).values;
  return {result};
}

}  // namespace
}  // namespace reference_pointwise_program

std::vector<Row> pointwise_program_rows() {
  using namespace reference_pointwise_program;
  Cases cases = particular();
  for (const PointwiseProgram& program : pointwise_programs()) add_calls(program, cases);
  return {{.type = "Pointwise",
           .reference = evaluated,
           .cases = cases,
           .ulps = 2,
           .domain = "heddle",
           .without = no_strides,
           .ulps_of = beside_f32(2, 2)}};
}

}  // namespace heddle::conformance
