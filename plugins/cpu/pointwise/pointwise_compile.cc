// Program::compile: expression text -> flat steps over slots. Folds constants, drops what is unused, wraps narrow integers after every
// operation, and gives values registers by linear scan.
#include <cmath>
#include <cstring>

#include "pointwise/pointwise_compiler.h"
#include "pointwise/pointwise_frame.h"
#include "shared/dtype_dispatch.h"
#include "shared/opcode_ranges.h"
#include "shared/pointwise_arithmetic.h"
#include "support/cpu_api.h"
#include "vector/convert.h"

namespace heddle::cpu {

static_assert(expression::opcode_count <= instruction_opcodes);

namespace {

constexpr size_t max_steps = 4096;
constexpr size_t max_slots = 8192;

Compute compute_of(heddle_dtype compute_dtype) {
  switch (compute_dtype) {
    case HEDDLE_F32:
      return Compute::f32;
    case HEDDLE_F64:
      return Compute::f64;
    case HEDDLE_I64:
      return Compute::i64;
    case HEDDLE_U64:
      return Compute::u64;
    case HEDDLE_U8:
      return Compute::u8;
    default:
      return Compute::i32;
  }
}
// The extension that wraps to a narrower type; -1: the dtype is computed in its own width.
int wrap_of(heddle_dtype arithmetic) {
  switch (arithmetic) {
    case HEDDLE_I8:
      return wrap_i8;
    case HEDDLE_I16:
      return wrap_i16;
    case HEDDLE_U8:
      return wrap_u8;
    case HEDDLE_U16:
      return wrap_u16;
    case HEDDLE_U32:
      return wrap_u32;
    default:
      return -1;
  }
}

// Measured on one core of an AVX-512 machine, per f32 element; only the ratios matter.
double cost_of(Opcode op, heddle_dtype compute_dtype) {
  const double width = static_cast<double>(plugin::byte_width(compute_dtype)) / 4;
  const bool f32 = compute_dtype == HEDDLE_F32;
  switch (op) {
    case Opcode::div:
    case Opcode::sqrt:
    case Opcode::rsqrt:
    case Opcode::reciprocal:
      return f32 || compute_dtype == HEDDLE_F64 ? 0.1 * width : 2.0;
    case Opcode::exp:
    case Opcode::log:
    case Opcode::tanh:
    case Opcode::erf:
    case Opcode::sigmoid:
      return f32 ? 0.3 : 8.0;
    case Opcode::pow:
    case Opcode::sin:
    case Opcode::cos:
    case Opcode::tan:
    case Opcode::log1p:
    case Opcode::expm1:
      return f32 ? 1.0 : 10.0;
    case Opcode::mod:
    case Opcode::fmod:
      return 2.0;
    case Opcode::asin:
    case Opcode::acos:
    case Opcode::atan:
      return f32 ? 0.5 : 8.0;
    case Opcode::sinh:
    case Opcode::cosh:
    case Opcode::asinh:
    case Opcode::acosh:
    case Opcode::atanh:
      return 8.0;
    default:
      return 0.04 * width;
  }
}

}  // namespace

// True if every value of the program is a byte: u8, which wraps by itself, or truth values that stay such.
bool Program::Compiler::bytes_suffice() const {
  const heddle_dtype output = text_.output_dtype != HEDDLE_DTYPE_NONE ? text_.output_dtype : arithmetic_;
  const bool truths = arithmetic_ == HEDDLE_BOOL;
  if ((arithmetic_ != HEDDLE_U8 && !truths) || (output != HEDDLE_U8 && output != HEDDLE_BOOL)) return false;
  for (const heddle_dtype dtype : text_.input_dtypes)
    if (dtype != HEDDLE_U8 && dtype != HEDDLE_BOOL) return false;
  for (const Instruction& instruction : source_.code) {
    const double literal = instruction.literal;
    if (instruction.op == Opcode::constant && !(literal >= 0 && literal <= (truths ? 1 : 255) && literal == std::trunc(literal)))
      return false;
    if (truths && operators::may_overflow(instruction.op)) return false;
  }
  return true;
}

Status Program::Compiler::choose_arithmetic() {
  arithmetic_ = text_.arithmetic;
  if (arithmetic_ == HEDDLE_DTYPE_NONE && !operators::find_arithmetic(text_.input_dtypes, text_.output_dtype, &arithmetic_))
    return fail(operators::different_dtypes);
  program_.compute_dtype_ = bytes_suffice() ? HEDDLE_U8 : compute_dtype(arithmetic_);
  program_.compute_width_ = static_cast<int64_t>(plugin::byte_width(program_.compute_dtype_));
  set_ = isa_instructions().sets[static_cast<int>(compute_of(program_.compute_dtype_))];
  return {};
}

int Program::Compiler::add(Value value) {
  values_.push_back(value);
  return static_cast<int>(values_.size()) - 1;
}

int Program::Compiler::add_constant(Bits bits) {
  constants_.push_back(bits);
  return add({Value::constant, constants_.size() - 1});
}

bool Program::Compiler::constant_value(int value, double* number) const {
  const Value& v = values_[static_cast<size_t>(value)];
  if (v.kind != Value::constant) return false;
  convert(program_.compute_dtype_, constants_[v.index].bytes, HEDDLE_F64, number, 1);
  return true;
}

Status Program::Compiler::lower_constant(double literal, int* value) {
  const heddle_dtype dtype = program_.compute_dtype_;
  if (dtype != HEDDLE_F32 && dtype != HEDDLE_F64 && literal != std::trunc(literal))
    return fail("constant " + std::to_string(literal) + " is not an integer, but the inputs are");
  Bits bits = {};
  convert(HEDDLE_F64, &literal, dtype, bits.bytes, 1);
  *value = add_constant(bits);
  return {};
}

// Adds a step, or returns its result at once when every operand is a constant.
int Program::Compiler::add_step(InstructionFunction function, const int* operands, int count, double cost) {
  Value step = {Value::step, 0};
  step.function = function;
  step.operand_count = count;
  step.cost = cost;
  bool constant = count > 0;
  for (int i = 0; i < count; ++i) {
    step.operands[i] = operands[i];
    constant = constant && values_[static_cast<size_t>(operands[i])].kind == Value::constant;
  }
  if (!constant) return add(step);
  const size_t width = static_cast<size_t>(program_.compute_width_);
  alignas(instruction_alignment) char lanes[4][instruction_alignment];
  InstructionOperand blocks[3];
  for (int i = 0; i < count; ++i) {
    const Bits& bits = constants_[values_[static_cast<size_t>(operands[i])].index];
    for (size_t at = 0; at < instruction_alignment; at += width) std::memcpy(lanes[i] + at, bits.bytes, width);
    blocks[i] = {lanes[i], 0};
  }
  function(blocks, lanes[3], instruction_alignment);
  Bits result = {};
  std::memcpy(result.bytes, lanes[3], width);
  return add_constant(result);
}

Status Program::Compiler::lower_operation(Opcode op, const int* operands, int count, int* value) {
  const InstructionFunction function = set_->functions[static_cast<int>(op)];
  if (!function) {
    const char* dtype = program_.compute_dtype_ == HEDDLE_F32 || program_.compute_dtype_ == HEDDLE_F64 ? "floats" : "integers";
    return fail(std::string(expression::info(op).name) + " is not defined for " + dtype);
  }
  if (simplify(op, operands, value)) return {};
  *value = add_step(function, operands, count, cost_of(op, program_.compute_dtype_));
  if (values_[static_cast<size_t>(*value)].kind == Value::step) values_[static_cast<size_t>(*value)].op = op;
  const int wrap = program_.compute_dtype_ == HEDDLE_U8 ? -1 : wrap_of(arithmetic_);
  if (wrap >= 0 && operators::may_overflow(op)) *value = add_step(set_->extensions[wrap], value, 1, 0.04);
  return {};
}

Status Program::Compiler::lower(const Instruction& instruction, int* value) {
  if (instruction.op == Opcode::constant) return lower_constant(instruction.literal, value);
  if (instruction.op == Opcode::input) {
    *value = add({Value::input, static_cast<size_t>(instruction.a)});
    return {};
  }
  int operands[3] = {-1, -1, -1};
  int count = 0;
  for (int32_t operand : {instruction.a, instruction.b, instruction.c})
    if (operand >= 0) operands[count++] = map_[static_cast<size_t>(operand)];
  return lower_operation(instruction.op, operands, count, value);
}

uint16_t Program::Compiler::slot_of(int value, const std::vector<int>& registers, const std::vector<int>& constant_slots) const {
  const Value& v = values_[static_cast<size_t>(value)];
  size_t slot = 0;
  if (v.kind == Value::constant)
    slot = static_cast<size_t>(constant_slots[v.index]);
  else if (v.kind == Value::input)
    slot = static_cast<size_t>(program_.constant_count_ + program_.register_count_) + v.index;
  else
    slot = static_cast<size_t>(program_.constant_count_ + registers[static_cast<size_t>(value)]);
  return static_cast<uint16_t>(slot);
}

// Keeps the values that the result needs, in order, and assigns registers to them.
void Program::Compiler::allocate(int result) {
  const size_t n = values_.size();
  std::vector<int> last_use(n, -1);
  last_use[static_cast<size_t>(result)] = result;
  for (size_t k = n; k-- > 0;) {
    if (last_use[k] < 0) continue;
    for (int operand : values_[k].operands)
      if (operand >= 0 && last_use[static_cast<size_t>(operand)] < 0) last_use[static_cast<size_t>(operand)] = static_cast<int>(k);
  }
  std::vector<int> registers(n, -1), constant_slots(constants_.size(), -1), free_registers;
  for (size_t k = 0; k < n; ++k) {
    Value& v = values_[k];
    if (last_use[k] < 0) continue;
    if (v.kind == Value::input) program_.inputs_[v.index].used = true;
    if (v.kind == Value::constant && constant_slots[v.index] < 0) constant_slots[v.index] = program_.constant_count_++;
    if (v.kind != Value::step) continue;
    // Operands whose last use is here give their register to the result: every vector is read before it is written.
    for (int i = 0; i < v.operand_count; ++i) {
      const size_t operand = static_cast<size_t>(v.operands[i]);
      if (values_[operand].kind == Value::step && last_use[operand] == static_cast<int>(k)) {
        free_registers.push_back(registers[operand]);
        last_use[operand] = static_cast<int>(n);  // freed; an operand may occur twice
      }
    }
    if (static_cast<int>(k) == result) continue;
    if (free_registers.empty()) {
      registers[k] = program_.register_count_++;
    } else {
      registers[k] = free_registers.back();
      free_registers.pop_back();
    }
  }
  const uint16_t output_slot = static_cast<uint16_t>(program_.constant_count_ + program_.register_count_ + program_.inputs_.size());
  for (size_t k = 0; k < n; ++k) {
    const Value& v = values_[k];
    if (v.kind != Value::step || last_use[k] < 0) continue;
    Step step = {v.function, static_cast<uint16_t>(v.operand_count), {}, 0};
    for (int i = 0; i < v.operand_count; ++i) step.operands[i] = slot_of(v.operands[i], registers, constant_slots);
    step.result = static_cast<int>(k) == result ? output_slot : static_cast<uint16_t>(program_.constant_count_ + registers[k]);
    program_.steps_.push_back(step);
    program_.cost_ns_ += v.cost;
  }
  constexpr size_t words = instruction_alignment / sizeof(uint64_t);
  program_.constants_.assign(program_.constant_count_ * words, 0);
  const size_t width = static_cast<size_t>(program_.compute_width_);
  for (size_t i = 0; i < constants_.size(); ++i) {
    if (constant_slots[i] < 0) continue;
    char* lanes = reinterpret_cast<char*>(&program_.constants_[static_cast<size_t>(constant_slots[i]) * words]);
    for (size_t at = 0; at < instruction_alignment; at += width) std::memcpy(lanes + at, constants_[i].bytes, width);
  }
}

Status Program::Compiler::run() {
  if (text_.inputs.size() != text_.input_dtypes.size()) return fail("needs a dtype for each input");
  source_.inputs = text_.inputs;
  std::string error;
  if (!expression::parse(text_.text, text_.constants, source_, error)) return fail(error);
  if (source_.inputs.size() > text_.inputs.size()) return fail("\"" + source_.inputs[text_.inputs.size()] + "\" is no input");
  if (source_.code.size() > max_steps) return fail("has more than " + std::to_string(max_steps) + " operations");
  if (Status s = choose_arithmetic(); !s.ok()) return s;
  for (heddle_dtype dtype : text_.input_dtypes)
    program_.inputs_.push_back(
        {dtype, false, dtype == program_.compute_dtype_ || (program_.compute_dtype_ == HEDDLE_U8 && dtype == HEDDLE_BOOL)});
  program_.output_dtype_ = text_.output_dtype != HEDDLE_DTYPE_NONE ? text_.output_dtype : arithmetic_;
  program_.direct_output_ = program_.output_dtype_ == program_.compute_dtype_;
  for (const Instruction& instruction : source_.code) {
    int value = -1;
    if (Status s = lower(instruction, &value); !s.ok()) return s;
    map_.push_back(value);
  }
  int result = map_.back();
  if (values_[static_cast<size_t>(result)].kind != Value::step) {
    Value copy = {Value::step, 0};
    copy.function = set_->extensions[copy_value];
    copy.operand_count = 1;
    copy.operands[0] = result;
    copy.cost = 0.04;
    result = add(copy);
  }
  // Truths are stored as they are computed where the last step makes them.
  if (program_.compute_dtype_ == HEDDLE_U8 && program_.output_dtype_ == HEDDLE_BOOL)
    program_.direct_output_ = operators::gives_truth(values_[static_cast<size_t>(result)].op);
  join_steps();
  allocate(result);
  if (program_.slot_count() > max_slots) return fail("needs too many values at once");
  program_.scratch_bytes_ = FrameLayout(program_.slot_count(), program_.register_count_, program_.inputs_.size()).bytes;
  return {};
}

Status Program::compile(const ProgramText& text, Program* program) {
  *program = {};
  return Compiler(text, *program).run();
}

}  // namespace heddle::cpu
