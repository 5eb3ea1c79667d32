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

}  // namespace

void PoolLaunches::parameters(const Window& window, int64_t count, int64_t channels, ParameterWriter& writer) const {
  writer.address("", stored_type(dtype_), "y", Address::output, 0);
  writer.address("const ", stored_type(dtype_), "x", Address::input, 0);
  if (indices_) writer.address("", "i64", "indices", Address::output, 1);
  writer.number("count", count);
  writer.number("channels", channels);
  // Up to three dimensions; missing ones come first, with extent 1.
  int64_t extents[7][operators::max_spatial];
  const int shift = operators::max_spatial - window.spatial;
  for (int i = 0; i < operators::max_spatial; ++i) {
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
  for (int i = 0; i < 7; ++i) writer.numbers(names[i], extents[i], operators::max_spatial);
  writer.number("counts_padding", int64_t{counts_padding ? 1 : 0});
  writer.number("power", power);
}

void PoolLaunches::functions(KernelText* text) const {
  text->function("C lowest()", std::string("return ") + lowest_text(dtype_) + ";");
  text->function("void store(const Parameters& p, Index at, C value)",
                 std::string("p.y[at] = Stored<") + stored_type(dtype_) + ">::of(value);");
  text->function("void store_index(const Parameters& p, Index at, i64 index)", indices_ ? "p.indices[at] = index;" : "");
  text->function("i64 index_of(const Parameters& p, i64 pixel)", column_major ? "return column_major(p, pixel);" : "return pixel;");
  text->function("C powered(const Parameters& p, C x)", kind != PoolKind::lp ? "return x;"
                                                        : power == 1         ? "return op_abs(x);"
                                                        : power == 2         ? "return x * x;"
                                                                             : "return op_pow(op_abs(x), (C)p.power);");
  text->function("C finished(const Parameters& p, C x, double divisor)",
                 kind == PoolKind::max || (kind == PoolKind::lp && power == 1) ? "return x;"
                 : kind == PoolKind::average                                   ? "return divisor > 1 ? x / (C)divisor : x;"
                 : power == 2                                                  ? "return op_sqrt(x);"
                                                                               : "return op_pow(x, (C)1 / (C)p.power);");
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
  source->contract = false;  // to get the host's bits
  KernelText text("pool", wide_);
  text.type("C", compute_type(dtype_));
  text.constant("MAX", kind == PoolKind::max);
  text.constant("LAST", last_);
  text.constant("INDICES", indices_);
  functions(&text);
  parameters({}, 0, 0, text.parameters);
  text.kernel("", "pool_all<F>");
  text.write({"grouped_sum", "pool"}, source);
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
