#include "generate/select/scan_launches.h"

#include <algorithm>

#include "generate/dtype_names.h"
#include "generate/kernel_text.h"
#include "generate/pointwise/fused_expression.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"

namespace heddle::cuda {
namespace {

using plugin::Status;

constexpr int scan_threads = 256;
constexpr int64_t longest_line = 64;  // of neighbouring elements, which one thread sums

}  // namespace

Status ScanLaunches::look(const Operands& operands, Numbers* n) const {
  const heddle_tensor &x = *operands.input(0), &axis = *operands.input(1);
  int at = 0;
  if (!operators::normalize_axis(operators::integer_at(axis, 0), x.rank, &at))
    return operators::axis_outside("axis", operators::integer_at(axis, 0), x.rank);
  const operators::Dims dims = operators::dims_of(x);
  n->count = n->part = dims[at];
  n->inner = dims.count(at + 1, dims.rank);
  n->lines = dims.count(0, at) * n->inner;
  return {};
}

// Divides by blocks of rows, or by threads of lines, until there is work for about as many as the largest devices run at once.
void ScanLaunches::divide(Numbers* n) const {
  const int64_t step = rows_ ? int64_t{scan_threads} * items_ : 1, enough = rows_ ? 528 : 528 * 64, least = rows_ ? 4 * step : 128;
  if (varies_ || 2 * n->lines > enough || n->count < 4 * least) return;
  const int64_t wanted = std::min({blocks_of(enough, n->lines), n->count / least, int64_t{512}});
  n->part = blocks_of(blocks_of(n->count, wanted), step) * step;
  n->parts = blocks_of(n->count, n->part);
}

void ScanLaunches::parameters(const Numbers& n, ParameterWriter& writer) const {
  writer.address("", stored_type(dtype_), "y", Address::output, 0);
  writer.address("const ", stored_type(dtype_), "x", Address::input, 0);
  writer.address("", "C", "sums", Address::scratch, 0, n.sums);
  writer.number("lines", n.lines);
  writer.number("count", n.count);
  writer.number("inner", n.inner);
  writer.number("parts", n.parts);
  writer.number("part", n.part);
}

void ScanLaunches::write(KernelSource* source) const {
  const FusedExpression none;
  const FusedExpressionText nothing(none, "");
  const std::string walk = rows_ ? "scan_rows" : "scan_lines";
  KernelText text("scan", wide_);
  text.type("C", compute_type(dtype_));
  text.head = "template <bool OF_PARTS>\n";
  text.functions = "  static constexpr bool TOTALS = OF_PARTS;\n" + load_member(dtype_, nothing) + store_member(dtype_, nothing);
  text.constant("CARRIES", split_);
  text.constant("EXCLUSIVE", exclusive);
  text.constant("REVERSE", reverse);
  text.constant("WHOLE", whole_);
  text.constant("ITEMS", items_);
  text.constant("THREADS", scan_threads);
  parameters({}, text.parameters);
  if (split_) {
    text.block_kernel("totals", walk + "<F<true>>", scan_threads);
    text.block_kernel("sums", "scan_sums<F<false>>", scan_threads);
  }
  text.block_kernel("", walk + "<F<false>>", scan_threads);
  text.write({"block", "scan"}, source);
}

Status ScanLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor& x = *operands.input(0);
  varies_ = varies || !operands.is_constant(1);
  if (operands.writes_nothing() && !varies_) return {};
  dtype_ = x.dtype;
  wide_ = varies_ || is_wide(x.element_count);
  if (!varies_) {
    Numbers n;
    HEDDLE_PLUGIN_CHECK(look(operands, &n));
    rows_ = n.inner == 1 && n.count > longest_line;
    items_ = rows_ ? std::min(4, 16 / static_cast<int>(plugin::byte_width(dtype_))) : 1;
    whole_ = rows_ && n.count % items_ == 0;
    divide(&n);
    split_ = n.parts > 1;
  }
  write(source);
  return {};
}

Status ScanLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing() || !operands.input(1)->data) return {};
  Numbers n;
  HEDDLE_PLUGIN_CHECK(look(operands, &n));
  if (split_) {
    divide(&n);
    n.sums = plan->take(static_cast<uint64_t>(n.lines * n.parts) * sizeof(double));
  }
  const int64_t units = n.lines * n.parts, blocks = rows_ ? units : blocks_of(units, scan_threads);
  uint32_t kernel = 0;
  const auto add = [&](int64_t count) {
    ParameterWriter writer(nullptr, &plan->add(kernel++, scan_threads, count));
    parameters(n, writer);
  };
  if (split_) {
    add(blocks);
    add(blocks_of(n.lines, scan_threads));
  }
  add(blocks);
  return {};
}

}  // namespace heddle::cuda
