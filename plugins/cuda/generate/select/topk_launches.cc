#include "generate/select/topk_launches.h"

#include <algorithm>

#include "generate/dtype_names.h"
#include "generate/kernel_text.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"

namespace heddle::cuda {
namespace {

using plugin::Status;

constexpr int max_entries = 2048;            // in shared memory
constexpr int64_t max_selected = 1024;       // of these entries
constexpr int64_t max_merged = 16384;        // that parts of a row leave together
constexpr unsigned int apart_threads = 256;  // in a block of kernels whose threads do not cooperate

const heddle_tensor& any_output(const Operands& operands) {
  return operands.output(0) ? *operands.output(0) : *operands.output(1);
}

}  // namespace

Status TopKLaunches::look(const Operands& operands, Numbers* n) const {
  const heddle_tensor &x = *operands.input(0), &y = any_output(operands);
  int at = 0;
  if (!operators::normalize_axis(axis, x.rank, &at)) return operators::axis_outside("axis", axis, x.rank);
  if (const heddle_tensor* k = operands.input(1); varies_ && k && k->data)
    HEDDLE_PLUGIN_CHECK(operators::check_planned({{"K", k}}, y, [&](operators::Extents* to) -> Status {
      const int64_t wanted = operators::integer_at(*k, 0);
      if (wanted < 0 || wanted > x.dims[at])
        return plugin::invalid("K is " + std::to_string(wanted) + ", axis " + std::to_string(at) + " has " + std::to_string(x.dims[at]) +
                               " elements");
      for (int i = 0; i < x.rank; ++i) to->push(i == at ? wanted : x.dims[i]);
      return {};
    }));
  const operators::Dims dims = operators::dims_of(x);
  n->count = n->part = dims[at];
  n->wanted = y.dims[at];
  n->inner = dims.count(at + 1, dims.rank);
  n->rows = dims.count(0, at) * n->inner;
  n->stride = blocks_of(n->count, max_entries) * max_entries;
  return {};
}

// Divides rows that are few and long into parts, few enough that their results are merged quickly.
void TopKLaunches::divide(Numbers* n) const {
  if (way_ != Way::select || varies_ || n->rows >= 264) return;
  const int64_t wanted = std::min({blocks_of(528, n->rows), n->count / (8 * max_selected), max_merged / n->wanted});
  if (wanted < 2) return;
  n->part = blocks_of(blocks_of(n->count, wanted), max_selected) * max_selected;
  n->parts = blocks_of(n->count, n->part);
}

void TopKLaunches::parameters(const Numbers& n, ParameterWriter& writer) const {
  writer.address("const ", stored_type(dtype_), "x", Address::input, 0);
  if (values_) writer.address("", stored_type(dtype_), "values", Address::output, 0);
  if (indices_) writer.address("", "i64", "indices", Address::output, 1);
  if (split_) writer.address("", "E", "entries", Address::scratch, 0, n.to);
  if (way_ == Way::merge) {
    writer.address("const ", "E", "from", Address::scratch, 0, n.from);
    writer.address("", "E", "to", Address::scratch, 0, n.to);
    writer.number("stride", n.stride);
    writer.number("run", n.run);
  }
  writer.number("rows", n.rows);
  writer.number("count", n.count);
  writer.number("wanted", n.wanted);
  writer.number("inner", n.inner);
  writer.number("parts", n.parts);
  writer.number("part", n.part);
}

void TopKLaunches::write(KernelSource* source) const {
  KernelText text("topk", wide_);
  text.type("E", short_ ? "ShortEntry" : "LongEntry");
  text.head = "template <bool TO_PARTS, bool OF_PARTS>\n";
  text.functions = "  static constexpr bool PARTS = TO_PARTS, MERGE = OF_PARTS;\n";
  text.constant("ENTRIES", entries_);
  text.constant("SEGMENT", segment_);
  text.constant("THREADS", entries_ / 2);
  text.function(
      "E entry(const Parameters& p, Index at, Index position)",
      std::string("return entry_of(") + (largest ? "~" : "") + "key_of(To<" + compute_type(dtype_) + ">::from(p.x[at])), position);");
  text.function("void put(const Parameters& p, Index begin, Index to, E e)",
                std::string(values_ ? "p.values[to] = p.x[begin + (Index)position_of(e) * (Index)p.inner]; " : "") +
                    (indices_ ? "p.indices[to] = (i64)position_of(e);" : ""));
  parameters({}, text.parameters);
  const auto add = [&](const char* name, const char* body) { text.block_kernel(name, body, entries_ / 2); };
  if (way_ == Way::merge) {
    add("blocks", "sort_blocks<F<false, false>>");
    add("merge", "merge_runs<F<false, false>>");
    add("", "take_first<F<false, false>>");
  } else if (split_) {
    add("parts", "select_rows<F<true, false>>");
    add("", "select_rows<F<false, true>>");
  } else {
    add("", way_ == Way::sort ? "sort_rows<F<false, false>>" : "select_rows<F<false, false>>");
  }
  text.write({"block", "sort"}, source);
}

Status TopKLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor& x = *operands.input(0);
  varies_ = varies || !operands.is_constant(1);
  if (operands.writes_nothing() && !varies_) return {};
  dtype_ = x.dtype;
  values_ = operands.output(0) != nullptr;
  indices_ = operands.output(1) != nullptr;
  Numbers n;
  HEDDLE_PLUGIN_CHECK(look(operands, &n));
  const std::string compute = compute_type(dtype_);
  short_ = (compute == "float" || compute == "i32") && !is_wide(n.count);
  way_ = n.count <= max_entries ? Way::sort : n.wanted <= max_selected && !varies ? Way::select : Way::merge;
  segment_ = static_cast<int>(std::clamp<int64_t>(power_above(n.count), 2, max_entries));
  entries_ = way_ == Way::sort ? std::max(segment_, 512) : max_entries;
  wide_ = varies || is_wide(x.element_count) || is_wide(n.rows * n.stride);
  divide(&n);
  split_ = n.parts > 1;
  write(source);
  return {};
}

void TopKLaunches::plan_merges(Numbers* n, LaunchPlan* plan) const {
  const int64_t entries = n->rows * n->stride;
  const uint64_t first = plan->take(static_cast<uint64_t>(entries * entry_bytes()));
  const uint64_t second = plan->take(static_cast<uint64_t>(entries * entry_bytes()));
  const auto add = [&](uint32_t kernel, unsigned int threads, int64_t blocks) {
    ParameterWriter writer(nullptr, &plan->add(kernel, threads, blocks));
    parameters(*n, writer);
  };
  n->from = second;
  n->to = first;
  add(0, static_cast<unsigned int>(entries_ / 2), entries / entries_);
  for (n->run = entries_; n->run < n->stride; n->run *= 2) {
    std::swap(n->from, n->to);
    add(1, apart_threads, blocks_of(entries, apart_threads));
  }
  n->from = n->to;
  add(2, apart_threads, blocks_of(n->rows * n->wanted, apart_threads));
}

Status TopKLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  Numbers n;
  HEDDLE_PLUGIN_CHECK(look(operands, &n));
  if (way_ == Way::merge) {
    plan_merges(&n, plan);
    return {};
  }
  const auto threads = static_cast<unsigned int>(entries_ / 2);
  const auto add = [&](uint32_t kernel, int64_t blocks) {
    ParameterWriter writer(nullptr, &plan->add(kernel, threads, blocks));
    parameters(n, writer);
  };
  if (way_ == Way::sort) {
    add(0, blocks_of(n.rows, entries_ / segment_));
    return {};
  }
  divide(&n);
  if (split_) {
    n.to = plan->take(static_cast<uint64_t>(n.rows * n.parts * n.wanted * entry_bytes()));
    add(0, n.rows * n.parts);
  }
  add(split_ ? 1 : 0, n.rows);
  return {};
}

}  // namespace heddle::cuda
