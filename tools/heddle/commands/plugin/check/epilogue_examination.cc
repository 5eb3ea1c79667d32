#include "commands/plugin/check/epilogue_examination.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "base/text/text.h"
#include "commands/plugin/check/watch/watched_run.h"
#include "heddle/expression_evaluate.h"
#include "tensors/inputs.h"

namespace heddle::tool {
namespace {

// The expression of an epilogue op as fusion prints it, and how its operand meets output 0.
struct EpilogueOpText {
  const char* expression;
  int32_t kind = HEDDLE_OPERAND_NONE;
};
using Epilogue = std::vector<EpilogueOpText>;

const char* kind_name(int32_t kind) {
  static const char* const names[] = {"", "same shape", "per channel", "last dimension", "scalar"};
  return names[kind];
}

// The shape of an operand of that kind, as fusion would see it; none: output 0 has no such operands.
std::optional<Shape> operand_shape(int32_t kind, const Shape& output) {
  const int rank = output.rank();
  Shape shape;
  switch (kind) {
    case HEDDLE_OPERAND_SAME_SHAPE:
      return output;
    case HEDDLE_OPERAND_PER_CHANNEL:
      if (rank < 3 || output[1] < 2) return {};
      shape.push_back(output[1]);
      for (int i = 2; i < rank; ++i) shape.push_back(1);
      return shape;
    case HEDDLE_OPERAND_LAST_DIMENSION:
      if (rank < 2 || output[rank - 1] < 2) return {};
      return Shape{output[rank - 1]};
    default:
      if (output == Shape{1}) return {};
      return Shape{1};
  }
}

// Which element of the operand goes with element `at` of the output.
int64_t operand_index(int32_t kind, const Shape& output, int64_t at) {
  const int rank = output.rank();
  if (kind == HEDDLE_OPERAND_SCALAR) return 0;
  if (kind == HEDDLE_OPERAND_LAST_DIMENSION) return at % output[rank - 1];
  if (kind != HEDDLE_OPERAND_PER_CHANNEL) return at;
  for (int i = rank - 1; i > 1; --i) at /= output[i];
  return at % output[1];
}

// Random numbers, with special values among them if there is more than one element.
std::shared_ptr<const Blob> operand_of(const Shape& shape, uint64_t seed) {
  using Limits = std::numeric_limits<float>;
  static const float special[] = {Limits::quiet_NaN(), -0.0f, Limits::infinity(), 0.0f, -Limits::infinity(), Limits::denorm_min()};
  const auto random = random_blob(DType::f32, shape, seed);
  std::byte* data = nullptr;
  auto operand = Blob::allocate(DType::f32, shape, &data);
  std::memcpy(data, random->data, static_cast<size_t>(random->bytes));
  for (int64_t i = 1; i < shape.element_count(); i += 2) std::memcpy(data + i * 4, &special[i / 2 % 6], sizeof(float));
  return operand;
}

// The call with NaN and an infinity among its numbers, so that epilogue ops receive them whatever they read beside acc.
OperatorCall with_special_values(OperatorCall call) {
  for (auto& input : call.inputs) {
    if (!input || input->dtype != DType::f32 || input->bytes == 0) continue;
    std::byte* data = nullptr;
    auto special = Blob::allocate(input->dtype, input->shape, &data);
    std::memcpy(data, input->data, static_cast<size_t>(input->bytes));
    const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
    std::memcpy(data + input->bytes - sizeof(float), &infinity, sizeof(float));
    std::memcpy(data, &nan, sizeof(float));
    input = std::move(special);
  }
  return call;
}

std::vector<Epilogue> epilogues() {
  std::vector<Epilogue> all = {{{"max(acc, 0)"}},
                               {{"max(acc, -0)"}},
                               {{"min(acc, 0)"}},
                               {{"min(acc, -0)"}},
                               {{"min(max(acc, -0.5), 0.75)"}},
                               {{"mul(acc, sigmoid(acc))"}},
                               {{"select(lt(acc, 0), mul(0.25, acc), acc)"}},
                               {{"mul(2, acc)"}, {"tanh(acc)"}, {"neg(acc)"}}};
  for (const int32_t kind : {HEDDLE_OPERAND_SAME_SHAPE, HEDDLE_OPERAND_PER_CHANNEL, HEDDLE_OPERAND_LAST_DIMENSION, HEDDLE_OPERAND_SCALAR})
    for (const char* expression : {"add(acc, operand)", "sub(operand, acc)", "max(operand, acc)"}) all.push_back({{expression, kind}});
  // A bias, a residual and an activation: NaN in the operands passes through all of them.
  for (const int32_t kind : {HEDDLE_OPERAND_PER_CHANNEL, HEDDLE_OPERAND_LAST_DIMENSION, HEDDLE_OPERAND_SCALAR})
    all.push_back({{"add(acc, operand)", kind}, {"add(operand, acc)", HEDDLE_OPERAND_SAME_SHAPE}, {"max(acc, 0)"}});
  return all;
}

class EpilogueExamination {
 public:
  // `special`: the call's inputs hold NaN or infinities.
  EpilogueExamination(const RegistrySnapshot& registry, const OperatorCall& call, const Blobs& outputs, bool special)
      : registry_(registry), call_(call), expected_(outputs), special_(special), shape_(outputs[0]->shape) {}
  EpilogueFinding examine();

 private:
  // A kernel that takes another path for NaN (like ours with oneDNN, whose activations lose it) creates that path when it is needed.
  bool is_allowed(const Finding& found) const { return special_ && found.mistake == std::string_view("allocates"); }
  bool fuse(const Epilogue& epilogue, OperatorCall& fused, std::string& about) const;
  std::vector<float> by_epilogue_ops(const OperatorCall& fused) const;
  Finding compare(const Blobs& got, const std::vector<float>& first, const std::string& about) const;
  Finding examine(const OperatorCall& fused, const EpilogueAnswer& answer, const std::string& about) const;
  Finding repeat(const OperatorCall& fused, GuardedBytes::Side side, const Blobs& first, const std::string& what) const;

  const RegistrySnapshot& registry_;
  const OperatorCall& call_;
  const Blobs& expected_;
  const bool special_;
  const Shape& shape_;
};

// Adds the epilogue to the call; returns false if output 0 has none of these operands.
bool EpilogueExamination::fuse(const Epilogue& epilogue, OperatorCall& fused, std::string& about) const {
  std::vector<std::string> named;
  for (const EpilogueOpText& epilogue_op : epilogue) {
    OperatorCall::EpilogueOp& added = fused.epilogue_ops.emplace_back();
    added.expression = epilogue_op.expression;
    named.emplace_back(epilogue_op.expression);
    if (epilogue_op.kind == HEDDLE_OPERAND_NONE) continue;
    const auto shape = operand_shape(epilogue_op.kind, shape_);
    if (!shape) return false;
    named.back() += fmt::format(" ({})", kind_name(epilogue_op.kind));
    added.operand_kind = epilogue_op.kind;
    added.operand_input = static_cast<int32_t>(fused.inputs.size());
    fused.inputs.push_back(operand_of(*shape, call_.random_seed + fused.inputs.size()));
  }
  about = join(named, ", then ");
  return true;
}

// Computes output 0 with the epilogue ops.
std::vector<float> EpilogueExamination::by_epilogue_ops(const OperatorCall& fused) const {
  const auto n = static_cast<size_t>(shape_.element_count());
  std::vector<float> acc(n), operand(n);
  std::memcpy(acc.data(), expected_[0]->data, n * sizeof(float));
  for (const OperatorCall::EpilogueOp& epilogue_op : fused.epilogue_ops) {
    expression::Program program;
    program.inputs = {"acc", "operand"};
    std::string error;
    expression::parse(epilogue_op.expression, {}, program, error);
    const auto evaluator = expression::Evaluator<float>::of(program, error);
    if (epilogue_op.operand_input >= 0)
      for (size_t i = 0; i < n; ++i)
        std::memcpy(&operand[i],
                    fused.inputs[static_cast<size_t>(epilogue_op.operand_input)]->data +
                        operand_index(epilogue_op.operand_kind, shape_, static_cast<int64_t>(i)) * 4,
                    sizeof(float));
    std::vector<float> scratch(evaluator->scratch_bytes() / sizeof(float));
    evaluator->run(static_cast<int64_t>(n), {{acc.data(), 1}, {operand.data(), 1}}, acc.data(), scratch.data());
  }
  return acc;
}

bool close(float got, float expected) {
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  if (got == expected) return got != 0 || std::signbit(got) == std::signbit(expected);
  return !std::isinf(got) && !std::isinf(expected) && std::fabs(got - expected) <= 1e-5f + 1e-4f * std::fabs(expected);
}

Finding EpilogueExamination::compare(const Blobs& got, const std::vector<float>& first, const std::string& about) const {
  if (got[0]->dtype != DType::f32 || got[0]->shape != shape_)
    return {"epilogue-differs",
            fmt::format("output 0 is {} with the epilogue {}, and {} without", got[0]->shape.text(), about, shape_.text())};
  for (size_t i = 0; i < first.size(); ++i) {
    float value = 0;
    std::memcpy(&value, got[0]->data + i * sizeof(float), sizeof(float));
    if (close(value, first[i])) continue;
    return {"epilogue-differs",
            fmt::format("accepts the epilogue {} and gives {} for element {} of output 0, where the operators one after the other give {}",
                        about, value, i, first[i])};
  }
  const Blobs others(got.begin() + 1, got.end()), before(expected_.begin() + 1, expected_.end());
  if (!same_bits(others, before)) return {"epilogue-differs", fmt::format("the epilogue {} changes other outputs than output 0", about)};
  return {};
}

Finding EpilogueExamination::repeat(const OperatorCall& fused, GuardedBytes::Side side, const Blobs& first, const std::string& what) const {
  const WatchedRun again(registry_, fused, side, 0x7f);
  if (!again.outputs().ok()) return {"epilogue-differs", fmt::format("fails {}: {}", what, again.outputs().status().text())};
  if (!again.found().ok() && !is_allowed(again.found())) return again.found();
  if (!same_bits(first, *again.outputs())) return {"epilogue-differs", fmt::format("gives other bits {}", what)};
  return {};
}

Finding EpilogueExamination::examine(const OperatorCall& fused, const EpilogueAnswer& answer, const std::string& about) const {
  const std::string with = fmt::format(" with the epilogue {}", about);
  const Describing here({with, ""});
  const WatchedRun run(registry_, fused, GuardedBytes::Side::behind, 0);
  if (!run.outputs().ok())
    return {"epilogue-differs", fmt::format("accepts the epilogue {} and then fails: {}", about, run.outputs().status().text())};
  if (!run.found().ok() && !is_allowed(run.found())) return Finding(run.found()).with(with);
  if (Finding found = compare(*run.outputs(), by_epilogue_ops(fused), about); !found.ok()) return found;
  OperatorCall other = fused;
  other.conditions.scratch_fill = other.conditions.thread_scratch_fill = other.conditions.output_fill = uint8_t{0xa5};
  Finding found = repeat(other, GuardedBytes::Side::front, *run.outputs(), "when its memory holds something");
  other = fused;
  other.split_seed = 7;
  if (found.ok()) found = repeat(other, GuardedBytes::Side::behind, *run.outputs(), "when its tiles are split");
  for (const OperatorCall::EpilogueOp& epilogue_op : fused.epilogue_ops) {
    if (!found.ok() || !answer.in_place || epilogue_op.operand_kind != HEDDLE_OPERAND_SAME_SHAPE) continue;
    other = fused;
    other.in_place = {{0, static_cast<uint32_t>(epilogue_op.operand_input)}};
    found = repeat(other, GuardedBytes::Side::behind, *run.outputs(), "with output 0 in place of the operand of the same shape");
  }
  if (found.ok() && fused.epilogue_ops.size() > 1) found = find_leaks(registry_, fused);
  return std::move(found).with(with);
}

EpilogueFinding EpilogueExamination::examine() {
  EpilogueFinding result;
  for (const Epilogue& epilogue : epilogues()) {
    OperatorCall fused = call_;
    fused.conditions.gives_state = true;
    std::string about;
    if (!fuse(epilogue, fused, about)) continue;
    const auto answer = operator_epilogue(registry_, fused);
    if (!answer.ok()) {
      result.found = {"epilogue-differs",
                      fmt::format("is asked whether it accepts the epilogue {} and fails: {}", about, answer.status().text())};
      return result;
    }
    if (!answer->asked) return result;
    result.asked = true;
    if (!answer->accepts) continue;
    result.accepted = true;
    result.found = examine(fused, *answer, about);
    if (!result.found.ok()) return result;
  }
  return result;
}

}  // namespace

EpilogueFinding examine_epilogues(const RegistrySnapshot& registry, const OperatorCall& call, const Blobs& outputs) {
  if (outputs.empty() || outputs[0]->dtype != DType::f32 || outputs[0]->bytes == 0) return {};
  EpilogueFinding result = EpilogueExamination(registry, call, outputs, false).examine();
  if (!result.accepted || !result.found.ok()) return result;
  const OperatorCall special = with_special_values(call);
  const auto of_special = run_operator(registry, special);
  if (of_special.ok() && !of_special->empty() && (*of_special)[0]->shape == outputs[0]->shape)
    result.found = EpilogueExamination(registry, special, *of_special, true).examine().found;
  return result;
}

}  // namespace heddle::tool
