#include "generate/select/scan_launches.h"

#include <algorithm>

#include "generate/chain.h"
#include "generate/dtype_names.h"
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

// By blocks of rows, or by threads of lines, until there is work for about as many as the largest devices run at once.
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

std::string ScanLaunches::text(KernelSource* source) const {
  std::string members;
  ParameterWriter writer(&members, nullptr);
  parameters({}, writer);
  const Chain none;
  const ChainText nothing(none, "");
  const std::string C = compute_type(dtype_), scope = source->prefix + "scan_scope", walk = rows_ ? "scan_rows" : "scan_lines";
  const auto constant = [](const char* type, const char* name, int value) {
    return std::string("  static constexpr ") + type + " " + name + " = " + std::to_string(value) + ";\n";
  };
  std::string text = "namespace " + scope + " {\ntypedef " + (wide_ ? "u64" : "u32") + " Index;\ntypedef " + C +
                     " C;\nstruct Parameters {\n" + members + "};\ntemplate <bool OF_PARTS>\nstruct F {\n  typedef " + scope +
                     "::Index Index;\n  typedef " + scope + "::C C;\n  static constexpr bool TOTALS = OF_PARTS;\n" +
                     constant("bool", "CARRIES", split_) + constant("bool", "EXCLUSIVE", exclusive) + constant("bool", "REVERSE", reverse) +
                     constant("bool", "WHOLE", whole_) + constant("int", "ITEMS", items_) + constant("int", "THREADS", scan_threads) +
                     load_member(dtype_, nothing) + store_member(dtype_, nothing) + "};\n";
  const auto add = [&](const char* name, const std::string& body) {
    text += "HEDDLE_BOUNDED_KERNEL(" + source->entry(name) + ", Parameters, p, " + std::to_string(scan_threads) + ") {\n  " + body +
            "(p);\n}\n";
  };
  if (split_) {
    add("totals", walk + "<F<true>>");
    add("sums", "scan_sums<F<false>>");
  }
  add("scan", walk + "<F<false>>");
  return text + "}\n";
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
  source->use("block");
  source->use("scan");
  source->text += text(source);
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
