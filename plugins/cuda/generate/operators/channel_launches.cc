#include "generate/operators/channel_launches.h"

#include <algorithm>

#include "generate/dtype_names.h"
#include "generate/kernel_text.h"

namespace heddle::cuda {

using plugin::Status;

namespace {

constexpr int channel_threads = 256;

}  // namespace

// Channels are dimension 1; a tensor of one dimension is one channel. In channels-last layouts they are adjacent.
ChannelLaunches::Numbers ChannelLaunches::numbers_of(const heddle_tensor& x) const {
  Numbers n;
  n.count = x.element_count;
  if (x.rank < 2) {
    n.inner = std::max<int64_t>(x.element_count, 1);
    return n;
  }
  n.channels = std::max<int64_t>(x.dims[1], 1);
  for (int i = 2; i < x.rank && x.layout.rank == 0; ++i) n.inner *= std::max<int64_t>(x.dims[i], 1);
  return n;
}

void ChannelLaunches::all_parameters(const Numbers& n, ParameterWriter& writer) const {
  writer.address("", stored_type(dtype_), "y", Address::output, 0);
  writer.address("const ", stored_type(dtype_), "x", Address::input, 0);
  FusedExpressionText(epilogue, "epilogue").parameters(writer);
  writer.number("count", n.count);
  writer.number("inner", n.inner);
  writer.number("channels", n.channels);
  parameters(n, writer);
}

Status ChannelLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor& x = *operands.input(0);
  if (operands.writes_nothing() && !varies) return {};
  dtype_ = x.dtype;
  look(operands);
  const Numbers n = numbers_of(x);
  const FusedExpression none;
  const FusedExpressionText nothing(none, ""), fused(epilogue, "epilogue");
  const auto widest = static_cast<int>(std::max(plugin::byte_width(dtype_), fused.widest()));
  width_ = takes_packs() && !varies ? 16 / widest : 1;
  while (n.count % width_ != 0) width_ /= 2;
  one_channel_ = n.inner % width_ == 0;
  wide_ = varies || is_wide(x.element_count);
  KernelText text("channels", wide_);
  HEDDLE_PLUGIN_CHECK(fused.function(dtype_, &text.helpers));
  text.type("C", compute_type(dtype_));
  text.constant("WIDTH", width_);
  text.constant("ONE_CHANNEL", one_channel_);
  text.functions += load_member(dtype_, nothing) + store_member(dtype_, fused) + members();
  all_parameters({}, text.parameters);
  text.kernel("", std::string(walk()) + "<F>");
  text.write({"channels"}, source);
  return {};
}

Status ChannelLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  const Numbers n = numbers_of(*operands.input(0));
  ParameterWriter writer(nullptr, &plan->add(0, channel_threads, blocks_of(blocks_of(n.count, width_), channel_threads)));
  all_parameters(n, writer);
  return {};
}

// ---------------------------------------------------------------- batch normalisation

void BatchLaunches::look(const Operands& operands) {
  scales_ = operands.input(1)->dtype;
  statistics_ = operands.input(3)->dtype;
}

std::string BatchLaunches::members() const {
  return "  HEDDLE_INLINE_MEMBER Affine<C> affine(const Parameters& p, Index channel) {\n"
         "    return {To<C>::from(p.mean[channel]), To<C>::from(p.scale[channel]) / op_sqrt(To<C>::from(p.variance[channel]) + "
         "(C)p.epsilon),\n            To<C>::from(p.bias[channel])};\n  }\n";
}

void BatchLaunches::parameters(const Numbers&, ParameterWriter& writer) const {
  writer.address("const ", stored_type(scales_), "scale", Address::input, 1);
  writer.address("const ", stored_type(scales_), "bias", Address::input, 2);
  writer.address("const ", stored_type(statistics_), "mean", Address::input, 3);
  writer.address("const ", stored_type(statistics_), "variance", Address::input, 4);
  writer.number("epsilon", epsilon);
}

// ---------------------------------------------------------------- LRN

void LocalLaunches::parameters(const Numbers& n, ParameterWriter& writer) const {
  writer.number("before", std::min((size - 1) / 2, n.channels));
  writer.number("behind", std::min(size / 2, n.channels));
  writer.number("alpha", alpha / static_cast<double>(size));
  writer.number("beta", beta);
  writer.number("bias", bias);
}

}  // namespace heddle::cuda
