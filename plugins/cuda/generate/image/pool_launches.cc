#include "generate/image/pool_launches.h"

#include "generate/dtype_names.h"
#include "shared/dims.h"

namespace heddle::cuda {

using operators::Window;
using plugin::Status;

namespace {

constexpr int pool_threads = 256;

const char* lowest_text(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_I8:
      return "-128";
    case HEDDLE_U8:
      return "0";
    default:
      return "-(C)float_of(0x7f800000u)";
  }
}

const char* flag(bool set) {
  return set ? "true" : "false";
}

}  // namespace

void PoolLaunches::parameters(const Window& window, int64_t count, int64_t channels, ParameterWriter& writer) const {
  writer.address("", stored_type(dtype_), "y", Address::output, 0);
  writer.address("const ", stored_type(dtype_), "x", Address::input, 0);
  if (indices_) writer.address("", "i64", "indices", Address::output, 1);
  writer.number("count", count);
  writer.number("channels", channels);
  // Up to three dimensions, those that there are not in front, of extent 1.
  int64_t extents[7][operators::most_spatial];
  const int shift = operators::most_spatial - window.spatial;
  for (int i = 0; i < operators::most_spatial; ++i) {
    const bool there = i >= shift;
    extents[0][i] = there ? window.input[i - shift] : 1;
    extents[1][i] = there ? window.output[i - shift] : 1;
    extents[2][i] = there ? window.kernel[i - shift] : 1;
    extents[3][i] = there ? window.stride[i - shift] : 1;
    extents[4][i] = there ? window.dilation[i - shift] : 1;
    extents[5][i] = there ? window.pad_begin[i - shift] : 0;
    extents[6][i] = there ? window.pad_end[i - shift] : 0;
  }
  const char* const names[] = {"input", "output", "kernel", "stride", "dilation", "begin", "end"};
  for (int i = 0; i < 7; ++i) writer.numbers(names[i], extents[i], operators::most_spatial);
  writer.number("counts_padding", int64_t{counts_padding ? 1 : 0});
  writer.number("power", power);
}

std::string PoolLaunches::members() const {
  const std::string T = stored_type(dtype_);
  std::string text = "  HEDDLE_INLINE_MEMBER C lowest() { return " + std::string(lowest_text(dtype_)) +
                     "; }\n  HEDDLE_INLINE_MEMBER void store(const Parameters& p, Index at, C value) { p.y[at] = Stored<" + T +
                     ">::of(value); }\n";
  text += "  HEDDLE_INLINE_MEMBER void store_index(const Parameters& p, Index at, i64 index) {" +
          std::string(indices_ ? " p.indices[at] = index; " : "") + "}\n";
  text += "  HEDDLE_INLINE_MEMBER i64 index_of(const Parameters& p, i64 pixel) { return " +
          std::string(column_major ? "column_major(p, pixel)" : "pixel") + "; }\n";
  const std::string powered = kind != PoolKind::lp ? "x"
                              : power == 1         ? "op_abs(x)"
                              : power == 2         ? "x * x"
                                                   : "op_pow(op_abs(x), (C)p.power)";
  text += "  HEDDLE_INLINE_MEMBER C powered(const Parameters& p, C x) { return " + powered + "; }\n";
  const std::string finished = kind == PoolKind::max || (kind == PoolKind::lp && power == 1) ? "x"
                               : kind == PoolKind::average                                   ? "divisor > 1 ? x / (C)divisor : x"
                               : power == 2                                                  ? "op_sqrt(x)"
                                                                                             : "op_pow(x, (C)1 / (C)p.power)";
  return text + "  HEDDLE_INLINE_MEMBER C finished(const Parameters& p, C x, double divisor) { return " + finished + "; }\n";
}

Status PoolLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor& x = *operands.input(0);
  const heddle_tensor& y = *operands.output(0);
  if (operands.writes_nothing() && !varies) return {};
  dtype_ = x.dtype;
  indices_ = operands.output(1) != nullptr;
  last_ = y.layout.rank != 0;
  if (last_ != (x.layout.rank != 0)) return plugin::unsupported("pooling wants input and output in one layout");
  if (last_ && indices_) return plugin::unsupported("indices of channels-last images");
  wide_ = varies || is_wide(y.element_count);
  source->contract = false;  // the host's bits
  std::string list;
  ParameterWriter writer(&list, nullptr);
  parameters({}, 0, 0, writer);
  const std::string entry = source->entry("pool"), scope = entry + "_scope";
  source->use("grouped_sum");
  source->use("pool");
  source->text += "namespace " + scope + " {\ntypedef " + (wide_ ? "u64" : "u32") + " Index;\ntypedef " + compute_type(dtype_) +
                  " C;\nstruct Parameters {\n" + list + "};\nstruct F {\n  typedef " + scope + "::Index Index;\n  typedef " + scope +
                  "::C C;\n  static constexpr bool MAX = " + flag(kind == PoolKind::max) + ", LAST = " + flag(last_) +
                  ", INDICES = " + flag(indices_) + ";\n" + members() + "};\nHEDDLE_KERNEL(" + entry +
                  ", Parameters, p) {\n  pool_all<F>(p);\n}\n}\n";
  return {};
}

Status PoolLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  const heddle_tensor& x = *operands.input(0);
  const heddle_tensor& y = *operands.output(0);
  Window window;
  HEDDLE_PLUGIN_CHECK(operators::resolve_window(attributes, operators::dims_of(x), attributes.kernel_shape, &window));
  ParameterWriter writer(nullptr, &plan->add(0, pool_threads, blocks_of(y.element_count, pool_threads)));
  parameters(window, y.element_count, x.dims[1], writer);
  return {};
}

}  // namespace heddle::cuda
