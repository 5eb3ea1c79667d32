#include "generate/operators/einsum_launches.h"

#include <algorithm>
#include <vector>

#include "generate/dtype_names.h"
#include "shared/dims.h"

namespace heddle::cuda {

using operators::SumOfProducts;
using plugin::Status;

namespace {

constexpr int thread_threads = 128, block_threads = 256;
// Sums of fewer products are computed by one thread each, and so are longer ones if there are enough of them.
constexpr int64_t long_sum = 256, enough_sums = 1 << 17;
// The smallest number of products in a part, if sums are divided, and the number of parts that is enough.
constexpr int64_t min_part = 1 << 14, enough_parts = 1024;
// The number of words of a launch, and how many of them do not depend on labels.
constexpr int max_words = 100, other_words = 8;

}  // namespace

Status EinsumLaunches::look(const Operands& operands, Walk* walk) const {
  operators::Dims dims[operators::max_einsum_operands];
  for (uint32_t i = 0; i < operands.input_count; ++i) dims[i] = operators::dims_of(*operands.input(i));
  SumOfProducts sum;
  HEDDLE_PLUGIN_CHECK(operators::make_sum_of_products(labels_, dims, &sum));
  for (int d = sum.output_rank; d < sum.label_count; ++d)
    if (__builtin_mul_overflow(walk->summed, sum.extents[d], &walk->summed))
      return plugin::unsupported("Einsum over more than 2^63 products for each output");
  int group = 0;  // where the labels begin that may be joined
  for (int d = 0; d < sum.label_count; ++d) {
    if (d == sum.output_rank) group = walk->outer = walk->inner;
    if (!varies_ && sum.extents[d] == 1) continue;
    int at = walk->inner;
    bool joins = !varies_ && at > group;
    for (int k = 0; k < sum.operand_count && joins; ++k) joins = walk->strides[k][at - 1] == sum.strides[k][d] * sum.extents[d];
    if (joins) --at;
    walk->extents[at] = joins ? walk->extents[at] * sum.extents[d] : sum.extents[d];
    for (int k = 0; k < sum.operand_count; ++k) walk->strides[k][at] = sum.strides[k][d];
    walk->inner = at + 1;
  }
  if (sum.label_count == sum.output_rank) walk->outer = walk->inner;
  walk->inner -= walk->outer;
  walk->part = walk->summed;
  return {};
}

void EinsumLaunches::parameters(const Walk& walk, const Operands& operands, ParameterWriter& writer) const {
  writer.address("", stored_type(dtype_), "y", Address::output, 0);
  for (uint32_t i = 0; i < operands.input_count; ++i) writer.address_of_many("const ", stored_type(dtype_), "x", i, Address::input, i);
  if (divided_) writer.address("", compute_type(dtype_), "partial", Address::scratch, 0);
  writer.number("outputs", operands.output(0)->element_count);
  writer.number("summed", walk.summed);
  writer.number("part", walk.part);
  writer.number("parts", walk.parts);
  const int labels = std::max(walk.labels(), 1);
  writer.numbers("extents", walk.extents, labels);
  int64_t strides[max_words];
  for (int k = 0; k < static_cast<int>(operands.input_count); ++k)
    std::copy(walk.strides[k], walk.strides[k] + labels, strides + k * labels);
  writer.numbers("strides", strides, labels * static_cast<int>(operands.input_count));
}

void EinsumLaunches::functions(const Operands& operands, KernelText* text) const {
  std::string factor;
  for (uint32_t i = 1; i < operands.input_count; ++i) {
    const std::string number = std::to_string(i);
    factor += "if (operand == " + number + ") return To<C>::from(p.x" + number + "[at]); ";
  }
  text->function("C factor(const Parameters& p, int operand, i64 at)", factor + "return To<C>::from(p.x0[at]);");
  text->function("void store(const Parameters& p, Index at, C value)", "p.y[at] = Stored<T>::of(value);");
}

Status EinsumLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor& y = *operands.output(0);
  varies_ = varies;
  if (operands.writes_nothing() && !varies) return {};
  std::vector<operators::Dims> dims;
  for (uint32_t i = 0; i < operands.input_count; ++i) dims.push_back(operators::dims_of(*operands.input(i)));
  HEDDLE_PLUGIN_CHECK(operators::parse_equation(equation, dims, &labels_));
  dtype_ = y.dtype;
  blocks_ = divided_ = false;
  Walk walk;
  HEDDLE_PLUGIN_CHECK(look(operands, &walk));
  if (other_words + static_cast<int>(operands.input_count) + std::max(walk.labels(), 1) * (1 + static_cast<int>(operands.input_count)) >
      max_words)
    return plugin::unsupported("Einsum of " + std::to_string(operands.input_count) + " operands with " + std::to_string(walk.labels()) +
                               " different dimensions");
  blocks_ = !varies && walk.summed >= long_sum && y.element_count < enough_sums;
  divided_ = blocks_ && walk.summed >= 2 * min_part && y.element_count <= enough_parts / 2;
  KernelText text("einsum", varies || is_wide(y.element_count) || is_wide(walk.summed));
  text.type("T", stored_type(dtype_));
  text.type("C", compute_type(dtype_));
  functions(operands, &text);
  text.constant("OPERANDS", operands.input_count);
  text.constant("OUTER", walk.outer);
  text.constant("INNER", walk.inner);
  text.constant("THREADS", block_threads);
  text.constant("DIVIDED", divided_);
  parameters(walk, operands, text.parameters);
  if (blocks_)
    text.block_kernel("blocks", "einsum_blocks<F>", block_threads);
  else
    text.kernel("threads", "einsum_threads<F>");
  if (divided_) text.kernel("parts", "einsum_parts<F>");
  text.write({"block", "grouped_sum", "einsum"}, source);
  return {};
}

Status EinsumLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  const int64_t outputs = operands.output(0)->element_count;
  Walk walk;
  HEDDLE_PLUGIN_CHECK(look(operands, &walk));
  if (divided_) {
    const int64_t wanted = std::min(blocks_of(enough_parts, outputs), walk.summed / min_part);
    walk.part = blocks_of(blocks_of(walk.summed, wanted), block_threads) * block_threads;
    walk.parts = blocks_of(walk.summed, walk.part);
    plan->take(static_cast<uint64_t>(outputs * walk.parts) * sizeof(int64_t));
  }
  const auto add = [&](uint32_t kernel, int threads, int64_t blocks) {
    ParameterWriter writer(nullptr, &plan->add(kernel, static_cast<unsigned int>(threads), blocks));
    parameters(walk, operands, writer);
  };
  if (blocks_)
    add(0, block_threads, outputs * walk.parts);
  else
    add(0, thread_threads, blocks_of(outputs, thread_threads));
  if (divided_) add(1, thread_threads, blocks_of(outputs, thread_threads));
  return {};
}

}  // namespace heddle::cuda
