#include "generate/rows/row_source.h"

#include "generate/dtype_names.h"
#include "generate/kernel_text.h"

namespace heddle::cuda {

using plugin::Status;

ReduceKind known_of(RowKind kind) {
  switch (kind) {
    case RowKind::softmax:
      return ReduceKind::softened;
    case RowKind::log_softmax:
      return ReduceKind::softened_log;
    case RowKind::hardmax:
      return ReduceKind::first_largest;
    case RowKind::moments:
      return ReduceKind::moments;
    case RowKind::moments_beside:
      return ReduceKind::moments_beside;
    case RowKind::squares:
      return ReduceKind::inverse_root;
    case RowKind::norm1:
      return ReduceKind::norm1;
    default:
      return ReduceKind::norm2;
  }
}

namespace {

std::string row_type(const RowShape& shape, const std::string& computed) {
  switch (shape.kind) {
    case RowKind::softmax:
      return "SoftmaxRow<C>";
    case RowKind::log_softmax:
      return "LogSoftmaxRow<C>";
    case RowKind::hardmax:
      return "HardmaxRow<C>";
    case RowKind::moments:
      return "MomentsRow<" + sum_type(shape.input, computed) + ", C, false>";
    case RowKind::moments_beside:
      return "MomentsRow<" + sum_type(shape.input, computed) + ", C, true>";
    case RowKind::squares:
      return "SquaresRow<C>";
    case RowKind::norm1:
      return "NormRow<C, 1>";
    default:
      return "NormRow<C, 2>";
  }
}

// The text of a parameter: statements before the elements, and its value for element e.
struct ParameterText {
  std::string reads, value;
};
ParameterText parameter_text(const RowShape& shape, PerRow access, heddle_dtype dtype, const std::string& name) {
  if (access == PerRow::none) return {};
  const std::string type = stored_type(dtype), pack = "Pack<" + type + ", W>", begin = "To<C>::from(",
                    channel = "channel_of(p, row, position";
  switch (access) {
    case PerRow::one:
      return {"    const C " + name + " = " + begin + "*p." + name + ");\n", name};
    case PerRow::position:
      return {"    const " + pack + " " + name + " = *(const " + pack + "*)(p." + name + " + position);\n", begin + name + ".element[e])"};
    case PerRow::repeated:
      return {"", begin + "p." + name + "[(position + e) % (Index)p." + name + "_repeat])"};
    default:
      if (shape.one_channel) return {"    const C " + name + " = " + begin + "p." + name + "[" + channel + ")]);\n", name};
      return {"", begin + "p." + name + "[" + channel + " + e)])"};
  }
}

void row_constants(const RowShape& shape, KernelText* text) {
  text->constant("WIDTH", shape.width);
  text->constant("THREADS", shape.threads);
  if (!shape.held) {
    text->constant("GROUPS", shape.groups);
    return;
  }
  text->constant("LANES", shape.lanes);
  text->constant("HELD", shape.packs);
  text->constant("STRIDED", shape.strided);
}

std::string write_text(const RowShape& shape, const FusedExpressionText& epilogue) {
  const ParameterText scale = parameter_text(shape, shape.scale, shape.scale_dtype, "scale");
  const ParameterText bias = parameter_text(shape, shape.bias, shape.bias_dtype, "bias");
  const std::string y = "Pack<" + std::string(stored_type(shape.output)) + ", W>";
  std::string value = scale.value.empty() ? "v[e]" : "v[e] * " + scale.value;
  if (!bias.value.empty()) value += " + " + bias.value;
  return "  template <int W>\n  HEDDLE_INLINE_MEMBER void write(const Parameters& p, Index at, Index row, Index position, const C (&v)[W]) "
         "{\n" +
         scale.reads + bias.reads + epilogue.reads("at") + "    " + y + " y;\n    for (int e = 0; e < W; ++e) y.element[e] = Stored<" +
         stored_type(shape.output) + ">::of(" + epilogue.call(value, shape.output) + ");\n    *(" + y + "*)(p.y + at) = y;\n  }\n";
}

std::string tell_text(const RowShape& shape) {
  std::string text = "  HEDDLE_INLINE_MEMBER void tell(const Parameters& p, Index row, const Kind::S& known) {\n";
  if (shape.mean != HEDDLE_DTYPE_NONE)  // an infinite mean has no second part
    text += "    p.mean[row] = Stored<" + std::string(stored_type(shape.mean)) +
            ">::of(is_finite(known.mean.shift) ? known.mean.shift + known.mean.rest : known.mean.shift);\n";
  if (shape.inverse != HEDDLE_DTYPE_NONE)
    text += "    p.inverse[row] = Stored<" + std::string(stored_type(shape.inverse)) + ">::of(known.inverse);\n";
  return text + "  }\n";
}

bool has_channels(const RowShape& shape) {
  return shape.scale == PerRow::channel || shape.bias == PerRow::channel;
}

}  // namespace

void row_parameters(const RowShape& shape, const RowNumbers& n, ParameterWriter& writer) {
  writer.address("", stored_type(shape.output), "y", Address::output, shape.result);
  writer.address("const ", stored_type(shape.input), "x", Address::input, 0);
  if (shape.scale != PerRow::none) writer.address("const ", stored_type(shape.scale_dtype), "scale", Address::input, 1);
  if (shape.bias != PerRow::none) writer.address("const ", stored_type(shape.bias_dtype), "bias", Address::input, 2);
  if (shape.mean != HEDDLE_DTYPE_NONE) writer.address("", stored_type(shape.mean), "mean", Address::output, 1);
  if (shape.inverse != HEDDLE_DTYPE_NONE) writer.address("", stored_type(shape.inverse), "inverse", Address::output, 2);
  if (!shape.held) writer.address("const ", "S", "known", Address::scratch, 0, n.known);
  FusedExpressionText(shape.prologue, "prologue").parameters(writer);
  FusedExpressionText(shape.epilogue, "epilogue").parameters(writer);
  if (shape.scale == PerRow::repeated) writer.number("scale_repeat", n.scale_repeat);
  if (shape.bias == PerRow::repeated) writer.number("bias_repeat", n.bias_repeat);
  if (has_channels(shape)) {
    writer.number("groups", n.groups);
    writer.number("channels", n.channels);
    writer.number("spatial", n.spatial);
  }
  if (shape.held) {
    writer.number("rows", n.rows);
    writer.number("columns", n.columns);
    writer.number("inner", n.inner);
    writer.number("epsilon", n.epsilon);
    return;
  }
  writer.number("count", n.count);
  writer.numbers("extents", n.extents, shape.groups);
  writer.numbers("row_strides", n.row_strides, shape.groups);
  writer.numbers("position_strides", n.position_strides, shape.groups);
}

Status row_source(const RowShape& shape, const std::string& name, KernelSource* source) {
  const FusedExpressionText prologue(shape.prologue, "prologue"), epilogue(shape.epilogue, "epilogue");
  KernelText text(name, shape.wide);
  HEDDLE_PLUGIN_CHECK(prologue.function(shape.input, &text.helpers));
  HEDDLE_PLUGIN_CHECK(epilogue.function(shape.output, &text.helpers));
  const std::string computed = shape.working == HEDDLE_F64 ? "double" : compute_type(shape.input);
  text.type("C", computed);
  text.type("Kind", row_type(shape, computed));
  text.type("S", "Kind::S");
  row_constants(shape, &text);
  if (has_channels(shape))
    text.function("Index channel_of(const Parameters& p, Index row, Index position)",
                  "return row % (Index)p.groups * (Index)p.channels + position / (Index)p.spatial;");
  text.functions += load_member(shape.input, prologue) + write_text(shape, epilogue) + tell_text(shape);
  row_parameters(shape, {}, text.parameters);
  text.block_kernel("", shape.held ? "held_rows<F>" : "apply_elements<F>", shape.threads);
  text.write({"block", "folds", "rows"}, source);
  return {};
}

}  // namespace heddle::cuda
