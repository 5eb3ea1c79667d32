#include "models/layers.h"

#include <cmath>

#include "models/weights.h"

namespace heddle::models {
namespace {

using Ints = std::vector<int64_t>;

float kaiming(const ConvSpec& spec) {
  return std::sqrt(2.0f / static_cast<float>(spec.in / spec.groups * spec.kernel_height * spec.kernel_width));
}

Shape kernel_shape(const ConvSpec& spec) {
  return {spec.out, spec.in / spec.groups, spec.kernel_height, spec.kernel_width};
}

}  // namespace

ValueId LayerBuilder::image(int64_t channels, int64_t size) {
  return net_.input("image", DType::f32, Shape{batch_, channels, size, size});
}

ValueId LayerBuilder::parameter(const std::string& name, const Shape& shape, float deviation) {
  return net_.constant(name, spread(name, shape, deviation, seed_));
}

ValueId LayerBuilder::parameter_between(const std::string& name, const Shape& shape, float least, float most) {
  return net_.constant(name, uniform(name, shape, least, most, seed_));
}

ValueId LayerBuilder::conv_node(const std::string& name, std::vector<ValueId> inputs, const ConvSpec& spec) {
  return net_.add1("Conv", name, std::move(inputs),
                   {{"dilations", Ints{1, 1}},
                    {"group", spec.groups},
                    {"kernel_shape", Ints{spec.kernel_height, spec.kernel_width}},
                    {"pads", Ints{spec.pad_height, spec.pad_width, spec.pad_height, spec.pad_width}},
                    {"strides", Ints{spec.stride, spec.stride}}});
}

ValueId LayerBuilder::conv(const std::string& name, ValueId x, const ConvSpec& spec) {
  return conv_node(name, {x, parameter(name + ".weight", kernel_shape(spec), kaiming(spec))}, spec);
}

ValueId LayerBuilder::conv_bias(const std::string& name, ValueId x, const ConvSpec& spec) {
  const ValueId weight = parameter(name + ".weight", kernel_shape(spec), kaiming(spec));
  return conv_node(name, {x, weight, parameter(name + ".bias", Shape{spec.out}, 0.05f)}, spec);
}

ValueId LayerBuilder::batch_norm(const std::string& name, ValueId x, int64_t channels, float gain, double epsilon) {
  const Shape shape{channels};
  const ValueId scale = parameter_between(name + ".weight", shape, 0.8f * gain, 1.2f * gain);
  const ValueId bias = parameter_between(name + ".bias", shape, -0.1f, 0.1f);
  const ValueId mean = parameter_between(name + ".running_mean", shape, -0.1f, 0.1f);
  const ValueId variance = parameter_between(name + ".running_var", shape, 0.75f, 1.25f);
  return net_.add1("BatchNormalization", name, {x, scale, bias, mean, variance}, {{"epsilon", epsilon}});
}

ValueId LayerBuilder::pool(const std::string& name, ValueId x, Pool kind, int64_t kernel, int64_t stride, int64_t pad) {
  std::vector<Attribute> attributes = {
      {"kernel_shape", Ints{kernel, kernel}}, {"pads", Ints{pad, pad, pad, pad}}, {"strides", Ints{stride, stride}}};
  if (kind == Pool::average) attributes.push_back({"count_include_pad", int64_t{1}});  // torch's default
  return net_.add1(kind == Pool::max ? "MaxPool" : "AveragePool", name, {x}, std::move(attributes));
}

ValueId LayerBuilder::dropout(const std::string& name, ValueId x, float ratio) {
  return net_.add1("Dropout", name, {x, net_.constant_float(name + "_ratio", ratio)});
}

ValueId LayerBuilder::global_pool(const std::string& name, ValueId x) {
  return net_.add1("Flatten", "flatten", {net_.add1("GlobalAveragePool", name, {x})}, {{"axis", int64_t{1}}});
}

ValueId LayerBuilder::linear(const std::string& name, ValueId x, int64_t in, int64_t out, float gain) {
  const ValueId weight = parameter(name + ".weight", Shape{out, in}, gain / std::sqrt(static_cast<float>(in)));
  const ValueId bias = parameter(name + ".bias", Shape{out}, 0.05f);
  return net_.add1("Gemm", name, {x, weight, bias}, {{"transB", int64_t{1}}});
}

ValueId LayerBuilder::dense(const std::string& name, ValueId x, int64_t in, int64_t out, float gain) {
  const ValueId weight = parameter(name + ".weight", Shape{in, out}, gain / std::sqrt(static_cast<float>(in)));
  const ValueId product = net_.add1("MatMul", name + ".matmul", {x, weight});
  return net_.add1("Add", name, {product, parameter(name + ".bias", Shape{out}, 0.05f)});
}

ValueId LayerBuilder::embedding(const std::string& name, ValueId indices, int64_t rows, int64_t width, float deviation) {
  return net_.add1("Gather", name, {parameter(name + ".weight", Shape{rows, width}, deviation), indices}, {{"axis", int64_t{0}}});
}

ValueId LayerBuilder::bag(const std::string& name, ValueId indices, int64_t rows, int64_t width, float deviation) {
  return net_.add1("EmbeddingBag", name, {parameter(name + ".weight", Shape{rows, width}, deviation), indices}, {}, "heddle");
}

ValueId LayerBuilder::upsample(const std::string& name, ValueId x, int64_t in, int64_t out) {
  // An element of the output is a sum over the input channels alone: windows of stride 2 do not overlap.
  const ValueId weight = parameter(name + ".weight", Shape{in, out, 2, 2}, 1 / std::sqrt(static_cast<float>(in)));
  return net_.add1("ConvTranspose", name, {x, weight, parameter(name + ".bias", Shape{out}, 0.05f)},
                   {{"dilations", Ints{1, 1}},
                    {"group", int64_t{1}},
                    {"kernel_shape", Ints{2, 2}},
                    {"pads", Ints{0, 0, 0, 0}},
                    {"strides", Ints{2, 2}}});
}

std::vector<ValueId> LayerBuilder::recurrent_inputs(const std::string& name, ValueId x, const RecurrentSpec& spec, int64_t gates) {
  const int64_t directions = spec.bidirectional ? 2 : 1, rows = gates * spec.hidden;
  return {x, parameter(name + ".W", Shape{directions, rows, spec.in}, spec.gain / std::sqrt(static_cast<float>(spec.in))),
          parameter(name + ".R", Shape{directions, rows, spec.hidden}, 1 / std::sqrt(static_cast<float>(spec.hidden))),
          parameter(name + ".B", Shape{directions, 2 * rows}, 0.05f)};
}

RecurrentOutputs LayerBuilder::recurrent_node(const std::string& type, const std::string& name, std::vector<ValueId> inputs,
                                              const RecurrentSpec& spec, std::vector<Attribute> attributes) {
  attributes.push_back({"direction", std::string(spec.bidirectional ? "bidirectional" : "forward")});
  attributes.push_back({"hidden_size", spec.hidden});
  const std::vector<ValueId> outputs = net_.add(type, name, std::move(inputs), spec.last ? 2 : 1, std::move(attributes));
  return {outputs[0], spec.last ? outputs[1] : ValueId()};
}

RecurrentOutputs LayerBuilder::lstm(const std::string& name, ValueId x, const RecurrentSpec& spec) {
  return recurrent_node("LSTM", name, recurrent_inputs(name, x, spec, 4), spec, {});
}

RecurrentOutputs LayerBuilder::gru(const std::string& name, ValueId x, const RecurrentSpec& spec, ValueId initial) {
  std::vector<ValueId> inputs = recurrent_inputs(name, x, spec, 3);
  if (initial.valid()) inputs.insert(inputs.end(), {ValueId(), initial});  // after sequence_lens
  return recurrent_node("GRU", name, std::move(inputs), spec, {{"linear_before_reset", int64_t{1}}});
}

Net LayerBuilder::finish(ValueId output, const std::string& name, ValueId auxiliary) {
  net_.rename(output, name);
  net_.output(output);
  if (auxiliary.valid()) {
    net_.rename(auxiliary, "auxiliary_" + name);
    net_.output(auxiliary);
  }
  net_.net().operator_sets.push_back({"", 21});
  return net_.finish();
}

}  // namespace heddle::models
