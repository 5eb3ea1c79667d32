// Softmax and its kin of opset < 13, normalisations, Dropout.
#include <fmt/format.h>

#include "onnx/operators/legalise.h"
#include "onnx/tensors/types.h"

namespace heddle::importer {

// Opset < 13 viewed the input as a matrix split at `axis` (default 1) and worked on its rows. That is today's operator along the
// last dimension when `axis` is the last; else the view is made explicit.
Status coerced_softmax(Rewrite& r) {
  HEDDLE_TRY(const auto given, r.take_int("axis"));
  const int rank = r.hint(r.input(0)).rank;
  const int64_t axis = given.value_or(1);
  if (rank >= 0 && (axis < -rank || axis > rank))
    return {Code::attribute_mismatch, fmt::format("axis {} is outside the input's {} dimensions", axis, rank)};
  const Attribute last{"axis", int64_t{-1}};
  if (axis == -1 || (rank > 0 && axis == rank - 1)) {
    r.node().attributes.push_back(last);
    return {};
  }
  const ValueId x = r.input(0);
  const ValueId flat = r.emit("flat", "Flatten", {x}, {{"axis", axis}});
  const ValueId rows = r.emit("rows", r.node().type, {flat}, {last});
  const ValueId shape = r.emit("shape", "Shape", {x});
  r.node().type = "Reshape";
  r.node().inputs = {rows, shape};
  r.node().attributes = {{"allowzero", int64_t{1}}};  // an extent of 0 means 0, and not "unchanged"
  return {};
}

// Outputs beyond the first requested training; opset 14 has an attribute for it and no longer returns the saved statistics.
Status batch_normalisation_inference(Rewrite& r) {
  HEDDLE_TRY(const auto is_test, r.take_int("is_test"));
  HEDDLE_TRY(const auto spatial, r.take_int("spatial"));
  if (spatial.value_or(1) == 0)
    return {Code::unsupported, "BatchNormalization with spatial = 0 keeps statistics per element",
            "export the model with opset 9 or newer, which has no such form"};
  if (is_test.value_or(0) != 0) r.node().outputs.resize(1);
  if (r.wants_output(3) || r.wants_output(4))
    return {Code::unsupported, "BatchNormalization with saved statistics as outputs",
            "export the model for inference, or with opset 14 or newer"};
  r.node().outputs.resize(std::min<size_t>(r.node().outputs.size(), 3));
  if (r.wants_output(1) || r.wants_output(2)) r.set("training_mode", int64_t{1});
  return {};
}

namespace {

// A mask of ones in the dtype of opset >= 10 (bool) or of the input before.
Status emit_mask(Rewrite& r, DType dtype) {
  if (!r.wants_output(1)) return {};
  std::byte* bytes = nullptr;
  auto one = Blob::allocate(dtype, Shape{1}, &bytes);
  if (dtype == DType::boolean) {
    bytes[0] = std::byte{1};
  } else if (dtype == DType::f32) {
    *reinterpret_cast<float*>(bytes) = 1;
  } else if (dtype == DType::f64) {
    *reinterpret_cast<double*>(bytes) = 1;
  } else {
    return {Code::unsupported, "the mask of an old Dropout as an output, of a dtype other than f32 and f64",
            "export with opset 10 or newer"};
  }
  const ValueId shape = r.emit("mask/shape", "Shape", {r.input(0)});
  r.emit_output(1, "ConstantOfShape", {shape}, {{"value", std::shared_ptr<const Blob>(std::move(one))}});
  return {};
}

Status dropout_as_identity(Rewrite& r, DType mask) {
  HEDDLE_CHECK(emit_mask(r, mask));
  r.node().type = "Identity";
  r.node().inputs.resize(std::min<size_t>(r.node().inputs.size(), 1));
  r.node().outputs.resize(1);
  r.node().attributes.clear();
  return {};
}

}  // namespace

Status dropout(Rewrite& r) {
  HEDDLE_TRY(const auto is_test, r.take_int("is_test"));
  HEDDLE_TRY(const auto ratio, r.take_float("ratio"));
  const bool training = r.opset() < 7 && is_test.value_or(0) == 0;
  const bool stays = training || (r.keeps_dropouts() && !r.wants_output(1));
  if (!stays) return dropout_as_identity(r, r.opset() < 10 ? r.hint(r.input(0)).dtype : DType::boolean);
  if (r.wants_output(1))
    return {Code::unsupported, "the mask of a training Dropout of opset 6 as an output", "export with opset 12 or newer"};
  const auto rate = static_cast<float>(ratio.value_or(0.5));
  r.set_input(1, r.constant("ratio", Blob::copy_of(DType::f32, Shape{}, &rate)));
  if (!training) return {};
  const bool yes = true;
  r.set_input(2, r.constant("training_mode", Blob::copy_of(DType::boolean, Shape{}, &yes)));
  return {};
}

Status dropout_modes(Rewrite& r) {
  const ValueId mode = r.input(2);
  const Blob* content = r.content(mode);
  const bool off = !mode.valid() || (content && content->shape.element_count() == 1 && content->data[0] == std::byte{0});
  const bool stays = !off || (r.keeps_dropouts() && !r.wants_output(1));
  return !stays ? dropout_as_identity(r, DType::boolean) : Status();
}

// [num_groups] → [C]: every group's number repeated for each of its channels.
Status group_scales_to_channels(Rewrite& r) {
  const int64_t groups = r.int_or("num_groups", 0);
  if (groups <= 0) return {Code::attribute_mismatch, "num_groups is missing or not positive"};
  const ValueId channels = r.emit("channels", "Shape", {r.input(0)}, {{"start", int64_t{1}}, {"end", int64_t{2}}});
  const ValueId count = r.ints("groups", {groups});
  const ValueId each = r.emit("channels_per_group", "Div", {channels, count});
  const ValueId table = r.emit("group_by_channel", "Concat", {count, each}, {{"axis", int64_t{0}}});
  for (const size_t i : {size_t{1}, size_t{2}}) {
    const std::string label = i == 1 ? "scale" : "bias";
    const ValueId column = r.emit(label + "/column", "Unsqueeze", {r.input(i), r.ints(label + "/axes", {1})});
    const ValueId spread = r.emit(label + "/spread", "Expand", {column, table});
    r.set_input(i, r.emit(label, "Reshape", {spread, r.ints(label + "/shape", {-1})}));
  }
  return {};
}

}  // namespace heddle::importer
