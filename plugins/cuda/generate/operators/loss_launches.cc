#include "generate/operators/loss_launches.h"

#include <algorithm>

#include "generate/dtype_names.h"
#include "generate/kernel_text.h"

namespace heddle::cuda {
namespace {

using plugin::Status;

constexpr int loss_threads = 256;
constexpr int64_t max_loss_parts = 512;

}  // namespace

void LossLaunches::parameters(const Numbers& n, ParameterWriter& writer) const {
  const char* const type = stored_type(dtype_);
  writer.address("", type, "y", Address::output, 0);
  writer.address("const ", type, "x", Address::input, 0);
  writer.address("const ", stored_type(labels_), "labels", Address::input, 1);
  writer.fault();
  if (weights_) writer.address("const ", type, "weights", Address::input, 2);
  writer.address("const ", "Softened<C>", "known", Address::scratch, 0, n.known);
  writer.address("", "Losses<S>", "partial", Address::scratch, 0, n.partial);
  writer.number("count", n.count);
  writer.number("classes", n.classes);
  writer.number("inner", n.inner);
  writer.number("ignored", ignored);
  writer.number("parts", n.parts);
  writer.number("part", n.part);
}

void LossLaunches::write(KernelSource* source) const {
  KernelText text("loss", wide_);
  text.type("C", compute_type(dtype_));
  text.type("S", sum_type(dtype_, compute_type(dtype_)));
  text.constant("SOFTMAX", softmax);
  text.constant("IGNORES", has_ignored);
  text.constant("MEAN", reduction == LossReduction::mean);
  text.constant("THREADS", loss_threads);
  text.function("C weight(const Parameters& p, i64 label)", weights_ ? "return To<C>::from(p.weights[label]);" : "return (C)1;");
  text.function("C score(const Parameters& p, Index at)", "return To<C>::from(p.x[at]);");
  text.function("void store(const Parameters& p, Index at, C loss)",
                std::string("p.y[at] = Stored<") + stored_type(dtype_) + ">::of(loss);");
  parameters({}, text.parameters);
  if (reduction != LossReduction::none) text.block_kernel("parts", "loss_parts<F>", loss_threads);
  text.block_kernel("", reduction == LossReduction::none ? "loss_each<F>" : "loss_total<F>", loss_threads);
  text.write({"block", "fault", "folds", "loss"}, source);
}

Status LossLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor& x = *operands.input(0);
  if (operands.writes_nothing() && !varies) return {};
  dtype_ = x.dtype;
  labels_ = operands.input(1)->dtype;
  weights_ = operands.input(2) != nullptr;
  // Without classes there are more labels than scores.
  wide_ = varies || is_wide(x.element_count) || is_wide(operands.input(1)->element_count);
  if (softmax) {
    known_.last.shape.kind = ReduceKind::softened_log;
    if (x.dtype == HEDDLE_F64) known_.last.shape.working = HEDDLE_F64;
    HEDDLE_PLUGIN_CHECK(known_.choose(x, 2, varies, "known", source));
    if (operands.output(1)) {
      logarithms_.shape.kind = RowKind::log_softmax;
      logarithms_.shape.input = logarithms_.shape.output = x.dtype;
      logarithms_.shape.result = 1;
      HEDDLE_PLUGIN_CHECK(logarithms_.choose(x, 2, varies, "logarithms", source));
    }
  }
  kernel_ = static_cast<uint32_t>(source->entries.size());
  if (operands.output(0)) write(source);
  return {};
}

Status LossLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  const heddle_tensor& x = *operands.input(0);
  Numbers n;
  n.count = operands.input(1)->element_count;
  n.classes = x.dims[1];
  for (int i = 2; i < x.rank && n.count > 0; ++i) n.inner *= x.dims[i];
  if (softmax) {
    n.known = plan->take(static_cast<uint64_t>(n.count * max_known_bytes));
    if (n.count > 0) known_.plan(x, 2, {Address::scratch, 0, 0, n.known}, plan);
    if (n.count > 0 && operands.output(1)) logarithms_.plan(x, 2, {}, n.known, plan);
  }
  if (!operands.output(0)) return {};
  const auto add = [&](uint32_t kernel, int64_t blocks) {
    ParameterWriter writer(nullptr, &plan->add(kernel, loss_threads, blocks));
    parameters(n, writer);
  };
  if (reduction == LossReduction::none) {
    add(kernel_, blocks_of(n.count, loss_threads));
    return {};
  }
  n.parts = std::min(blocks_of(n.count, loss_threads * 8), max_loss_parts);
  n.part = n.parts > 0 ? blocks_of(n.count, n.parts) : 0;
  n.partial = plan->take(static_cast<uint64_t>(n.parts * 2 * max_folded_bytes));
  add(kernel_, n.parts);
  add(kernel_ + 1, 1);
  return {};
}

}  // namespace heddle::cuda
