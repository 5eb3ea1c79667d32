#include "generate/operators/random_launches.h"

#include <algorithm>
#include <string>

#include "generate/dtype_names.h"
#include "shared/scalar.h"

namespace heddle::cuda {

using plugin::Status;

namespace {

constexpr uint32_t ratio_port = 1, training_port = 2;
// The largest size of the sums of all Multinomial blocks together; at least one block has sums of its own.
constexpr int64_t max_sum_bytes = int64_t{64} << 20;

int64_t width(const heddle_tensor& tensor) {
  return static_cast<int64_t>(plugin::byte_width(tensor.dtype));
}

}  // namespace

Status DrawLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  HEDDLE_PLUGIN_CHECK(check(operands));
  if (operands.writes_nothing() && !varies) return {};
  const heddle_tensor& y = *operands.output(0);
  const heddle_tensor* const x = operands.input(0);
  KernelText text("draw", varies || is_wide(y.element_count) || (x && is_wide(x->element_count)));
  describe(operands, &text);
  parameters(operands, text.parameters);
  source->contract = false;
  text.write({"block", "some", "random"}, source);
  return {};
}

Status DrawLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  const int64_t blocks = divide(operands, plan);
  ParameterWriter writer(nullptr, &plan->add(0, move_threads, blocks));
  parameters(operands, writer);
  return {};
}

// Uses one thread for each block of numbers.
int64_t DrawLaunches::divide(const Operands& operands, LaunchPlan*) const {
  return blocks_of(blocks_of(operands.output(0)->element_count, numbers_per_block(operands)), move_threads);
}

namespace {

void add_state(const operators::Seed& seed, ParameterWriter& writer) {
  writer.random_state();
  writer.number("own_seed", int64_t{seed.is_own()});
  writer.number("seed", static_cast<int64_t>(seed.own()));
}

}  // namespace

// ---------------------------------------------------------------- RandomNormal, RandomUniform

void NumbersLaunches::describe(const Operands& operands, KernelText* text) const {
  const heddle_tensor& y = *operands.output(0);
  text->type("T", stored_type(y.dtype));
  text->type("R", compute_type(y.dtype));
  text->type("Bits", unit_type(width(y)));
  text->constant("NORMAL", numbers.normal);
  text->kernel("numbers", "draw_numbers<F>");
}

void NumbersLaunches::parameters(const Operands& operands, ParameterWriter& writer) const {
  const heddle_tensor& y = *operands.output(0);
  writer.address("", stored_type(y.dtype), "y", Address::output, 0);
  writer.number("count", y.element_count);
  writer.number("offset", numbers.offset);
  writer.number("factor", numbers.factor);
  writer.number("bound", numbers.bound);
  add_state(seed, writer);
}

// ---------------------------------------------------------------- Bernoulli

void BernoulliLaunches::describe(const Operands& operands, KernelText* text) const {
  text->type("T", unit_type(width(*operands.output(0))));
  text->type("X", stored_type(operands.input(0)->dtype));
  text->kernel("choices", "draw_choices<F>");
}

void BernoulliLaunches::parameters(const Operands& operands, ParameterWriter& writer) const {
  const heddle_tensor &x = *operands.input(0), &y = *operands.output(0);
  writer.address("", unit_type(width(y)), "y", Address::output, 0);
  writer.address("const ", stored_type(x.dtype), "x", Address::input, 0);
  writer.number("count", y.element_count);
  writer.number("one", static_cast<int64_t>(operators::one_of(y.dtype)));
  add_state(seed, writer);
}

// ---------------------------------------------------------------- Multinomial

void MultinomialLaunches::describe(const Operands& operands, KernelText* text) const {
  text->type("T", stored_type(operands.output(0)->dtype));
  text->constant("THREADS", move_threads);
  text->block_kernel("classes", "draw_classes<F>", move_threads);
}

// Each block has its own sums. Takes scratch such that fewer rows, or classes, need no more.
int64_t MultinomialLaunches::divide(const Operands& operands, LaunchPlan* plan) const {
  const heddle_tensor& x = *operands.input(0);
  const int64_t row_bytes = x.dims[1] * static_cast<int64_t>(sizeof(double)), most = std::max(max_sum_bytes, row_bytes);
  const int64_t blocks = std::min(x.dims[0], most / row_bytes);
  plan->take(static_cast<uint64_t>(x.dims[0] > most / row_bytes ? most : x.dims[0] * row_bytes));
  return blocks;
}

void MultinomialLaunches::parameters(const Operands& operands, ParameterWriter& writer) const {
  const heddle_tensor &x = *operands.input(0), &y = *operands.output(0);
  writer.address("", stored_type(y.dtype), "y", Address::output, 0);
  writer.address("const ", stored_type(x.dtype), "x", Address::input, 0);
  writer.address("", "double", "sums", Address::scratch, 0);
  writer.number("rows", x.dims[0]);
  writer.number("classes", x.dims[1]);
  writer.number("samples", y.dims[1]);
  add_state(seed, writer);
}

// ---------------------------------------------------------------- Dropout

Status DropoutLaunches::check(const Operands& operands) const {
  const void* const bytes = operands.constant_bytes(ratio_port);
  if (!bytes) return {};
  heddle_tensor ratio = *operands.input(ratio_port);
  ratio.data = const_cast<void*>(bytes);
  return operators::check_dropout_ratio(operators::number_at(ratio, 0));
}

void DropoutLaunches::describe(const Operands& operands, KernelText* text) const {
  const heddle_tensor& y = *operands.output(0);
  text->type("T", stored_type(y.dtype));
  text->type("C", compute_type(y.dtype));
  text->constant("MASK", operands.output(1) != nullptr);
  const auto* const known = static_cast<const uint8_t*>(operands.constant_bytes(training_port));
  const bool never = !operands.input(training_port) || (known && *known == 0);
  text->function("double ratio([[maybe_unused]] const Parameters& p)",
                 operands.input(ratio_port) ? "return To<double>::from(p.ratio[0]);" : "return 0.5;");
  text->function("bool trains([[maybe_unused]] const Parameters& p)", never ? "return false;" : "return p.training[0].byte != 0;");
  text->kernel("dropout", "drop_out<F>");
}

void DropoutLaunches::parameters(const Operands& operands, ParameterWriter& writer) const {
  const heddle_tensor &x = *operands.input(0), &y = *operands.output(0);
  writer.address("", stored_type(y.dtype), "y", Address::output, 0);
  writer.address("const ", stored_type(x.dtype), "x", Address::input, 0);
  if (operands.output(1)) writer.address("", "boolean", "mask", Address::output, 1);
  const heddle_tensor *const ratio = operands.input(ratio_port), *const training = operands.input(training_port);
  if (ratio) writer.address("const ", stored_type(ratio->dtype), "ratio", Address::input, ratio_port);
  if (training) writer.address("const ", "boolean", "training", Address::input, training_port);
  writer.number("count", y.element_count);
  add_state(seed, writer);
}

}  // namespace heddle::cuda
