// Upsample, Resize and other sampling operators.
#include <fmt/format.h>

#include "onnx/operators/legalise.h"

namespace heddle::importer {
namespace {

ValueId float_list(Rewrite& r, const std::string& label, const std::vector<double>& values) {
  std::vector<float> single(values.begin(), values.end());
  return r.constant(label, Blob::copy_of(DType::f32, Shape{static_cast<int64_t>(single.size())}, single.data()));
}

// Before opset 11 coordinates were asymmetric.
void resize_as_before_11(Rewrite& r, ValueId scales, const char* nearest_mode) {
  r.node().type = "Resize";
  r.node().inputs = {r.input(0), ValueId(), scales};
  r.set("coordinate_transformation_mode", std::string("asymmetric"));
  if (r.find("mode") && std::get_if<std::string>(r.find("mode")) && std::get<std::string>(*r.find("mode")) != "nearest") return;
  r.set("nearest_mode", std::string(nearest_mode));
}

}  // namespace

Status upsample_to_resize(Rewrite& r) {
  ValueId scales = r.input(1);
  HEDDLE_TRY(const auto list, r.take_floats("scales"));
  HEDDLE_TRY(const auto height, r.take_float("height_scale"));
  HEDDLE_TRY(const auto width, r.take_float("width_scale"));
  if (list) scales = float_list(r, "scales", *list);
  if (height && width) scales = float_list(r, "scales", {1, 1, *height, *width});
  if (!scales.valid()) return {Code::attribute_mismatch, "attribute \"scales\" is missing"};
  const AttributeValue* mode = r.find("mode");
  if (mode && std::get_if<std::string>(mode) && std::get<std::string>(*mode) == "bilinear") r.set("mode", std::string("linear"));
  resize_as_before_11(r, scales, "floor");
  return {};
}

// Opset 10 left the rounding open; runtimes agreed on down along axes that grow and up along those that shrink. The scales may be known
// only when the net runs, so the operator decides axis by axis.
Status resize_10(Rewrite& r) {
  const ValueId scales = r.input(1);
  if (!scales.valid()) return {Code::arity_mismatch, "Resize of opset 10 has no scales"};
  resize_as_before_11(r, scales, "floor_or_ceil");
  return {};
}

Status resize_empty_inputs(Rewrite& r) {
  for (size_t i = 1; i < r.node().inputs.size(); ++i) {
    const Blob* content = r.content(r.input(i));
    if (content && content->shape.element_count() == 0) r.set_input(i, ValueId());
  }
  const AttributeValue* mode = r.find("coordinate_transformation_mode");
  if (mode && std::get_if<std::string>(mode) && std::get<std::string>(*mode) == "tf_half_pixel_for_nn")
    return {Code::unsupported, "coordinate_transformation_mode \"tf_half_pixel_for_nn\", which opset 13 removed",
            "export with opset 13 or newer"};
  return {};
}

Status roi_align_mode(Rewrite& r) {
  if (!r.find("coordinate_transformation_mode")) r.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return {};
}

Status grid_sample_names(Rewrite& r) {
  HEDDLE_TRY(const auto mode, r.take_string("mode"));
  if (mode) r.set("mode", *mode == "bilinear" ? std::string("linear") : *mode == "bicubic" ? std::string("cubic") : *mode);
  return {};
}

}  // namespace heddle::importer
