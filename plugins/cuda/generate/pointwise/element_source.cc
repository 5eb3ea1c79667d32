#include "generate/pointwise/element_source.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "generate/dtype_names.h"
#include "shared/opcode_ranges.h"
#include "shared/pointwise_arithmetic.h"

namespace heddle::cuda {
namespace {

using expression::Instruction;
using expression::Opcode;
using plugin::Status;

bool is_float(heddle_dtype dtype) {
  return dtype == HEDDLE_F16 || dtype == HEDDLE_BF16 || dtype == HEDDLE_F32 || dtype == HEDDLE_F64;
}

// Returns true for operations that exist only for floats; the next function does so for integers.
bool of_floats(Opcode op) {
  switch (op) {
    case Opcode::exp:
    case Opcode::log:
    case Opcode::sqrt:
    case Opcode::rsqrt:
    case Opcode::reciprocal:
    case Opcode::tanh:
    case Opcode::erf:
    case Opcode::sigmoid:
    case Opcode::sin:
    case Opcode::cos:
    case Opcode::tan:
    case Opcode::asin:
    case Opcode::acos:
    case Opcode::atan:
    case Opcode::sinh:
    case Opcode::cosh:
    case Opcode::asinh:
    case Opcode::acosh:
    case Opcode::atanh:
    case Opcode::log1p:
    case Opcode::expm1:
    case Opcode::isnan:
    case Opcode::isinf:
      return true;
    default:
      return false;
  }
}
bool of_integers(Opcode op) {
  return op == Opcode::bit_and || op == Opcode::bit_or || op == Opcode::bit_xor || op == Opcode::bit_not || op == Opcode::shift_left ||
         op == Opcode::shift_right;
}

std::string hexadecimal(uint64_t bits) {
  char buffer[24];
  std::snprintf(buffer, sizeof(buffer), "0x%" PRIx64, bits);
  return buffer;
}

Status literal(double value, heddle_dtype arithmetic, std::string* text) {
  const std::string type = compute_type(arithmetic);
  if (type == "float") {
    const auto rounded = static_cast<float>(value);
    uint32_t bits = 0;
    std::memcpy(&bits, &rounded, sizeof(bits));
    *text = "__uint_as_float(" + hexadecimal(bits) + "u)";
    return {};
  }
  if (type == "double") {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    *text = "__longlong_as_double((i64)" + hexadecimal(bits) + "ull)";
    return {};
  }
  if (value != std::trunc(value) || std::fabs(value) > 0x1p63)
    return plugin::unsupported("constant " + std::to_string(value) + " is no integer, but the inputs are");
  *text = "(" + type + ")" + hexadecimal(static_cast<uint64_t>(static_cast<int64_t>(value))) + "ull";
  return {};
}

std::string name_of(Opcode op) {
  return "op_" + std::string(expression::info(op).name);
}

}  // namespace

Status arithmetic_of(const std::vector<heddle_dtype>& inputs, heddle_dtype output, heddle_dtype* arithmetic) {
  return operators::find_arithmetic(inputs, output, arithmetic) ? Status() : plugin::unsupported(operators::different_dtypes);
}

Status element_function(const expression::Program& program, heddle_dtype arithmetic, const std::string& name, std::string* text) {
  const std::string type = compute_type(arithmetic);
  const char* const wrap = wrap_of(arithmetic);
  std::string body, parameters;
  for (size_t i = 0; i < program.inputs.size(); ++i) parameters += (i > 0 ? ", " : "") + type + " x" + std::to_string(i);
  for (size_t k = 0; k < program.code.size(); ++k) {
    const Instruction& instruction = program.code[k];
    std::string value;
    if (instruction.op == Opcode::input) {
      value = "x" + std::to_string(instruction.a);
    } else if (instruction.op == Opcode::constant) {
      HEDDLE_PLUGIN_CHECK(literal(instruction.literal, arithmetic, &value));
    } else {
      if (is_float(arithmetic) ? of_integers(instruction.op) : of_floats(instruction.op))
        return plugin::unsupported(std::string(expression::info(instruction.op).name) + " is not defined for " +
                                   (is_float(arithmetic) ? "floats" : "integers"));
      value = name_of(instruction.op) + "(";
      for (const int32_t operand : {instruction.a, instruction.b, instruction.c})
        if (operand >= 0) value += (value.back() == '(' ? "t" : ", t") + std::to_string(operand);
      value += ")";
      if (wrap && operators::may_overflow(instruction.op)) value = std::string(wrap) + "(" + value + ")";
    }
    body += "  const " + type + " t" + std::to_string(k) + " = " + value + ";\n";
  }
  *text = "HEDDLE_INLINE " + type + " " + name + "(" + parameters + ") {\n" + body + "  return t" +
          std::to_string(program.code.size() - 1) + ";\n}\n";
  return {};
}

}  // namespace heddle::cuda
