// Attributes that newer opsets made inputs, and other changes of shape and indexing operators.
#include <fmt/format.h>

#include <cmath>

#include "base/text/text.h"
#include "onnx/operators/legalise.h"
#include "onnx/tensors/types.h"

namespace heddle::importer {
namespace {

// Attribute `name`, if there, becomes the constant input `index`.
Status ints_to_input(Rewrite& r, const char* name, size_t index) {
  HEDDLE_TRY(const auto values, r.take_ints(name));
  if (values) r.set_input(index, r.ints(name, *values));
  return {};
}

Status missing_attribute(const char* name) {
  return {Code::attribute_mismatch, fmt::format("attribute {} is missing", quoted(name))};
}

}  // namespace

Status attribute_axes_to_input(Rewrite& r) {
  HEDDLE_TRY(const auto axes, r.take_ints("axes"));
  if (axes && !axes->empty()) r.set_input(1, r.ints("axes", *axes));
  if ((!axes || axes->empty()) && r.node().type == "Unsqueeze") return missing_attribute("axes");
  return {};
}

Status split_sizes_to_input(Rewrite& r) {
  HEDDLE_CHECK(ints_to_input(r, "split", 1));
  if (!r.input(1).valid()) r.set("num_outputs", static_cast<int64_t>(r.node().outputs.size()));
  return {};
}

Status reshape_shape_to_input(Rewrite& r) {
  return ints_to_input(r, "shape", 1);
}

Status slice_to_inputs(Rewrite& r) {
  if (!r.find("starts") || !r.find("ends")) return missing_attribute(r.find("starts") ? "ends" : "starts");
  HEDDLE_CHECK(ints_to_input(r, "starts", 1));
  HEDDLE_CHECK(ints_to_input(r, "ends", 2));
  return ints_to_input(r, "axes", 3);
}

Status pad_to_inputs(Rewrite& r) {
  if (!r.find("pads") && !r.find("paddings")) return missing_attribute("pads");
  HEDDLE_CHECK(ints_to_input(r, "paddings", 1));  // opset 1
  HEDDLE_CHECK(ints_to_input(r, "pads", 1));
  HEDDLE_TRY(const auto value, r.take_float("value"));
  if (value.value_or(0) != 0) r.set_input(2, r.scalar_like("value", *value, r.input(0)));
  return {};
}

Status clip_to_inputs(Rewrite& r) {
  HEDDLE_TRY(const auto least, r.take_float("min"));
  HEDDLE_TRY(const auto most, r.take_float("max"));
  if (least) r.set_input(1, r.scalar_like("min", *least, r.input(0)));
  if (most) r.set_input(2, r.scalar_like("max", *most, r.input(0)));
  return {};
}

Status top_k_to_input(Rewrite& r) {
  HEDDLE_TRY(const auto k, r.take_int("k"));
  if (!k) return missing_attribute("k");
  r.set_input(1, r.ints("k", {*k}));
  return {};
}

// Opset 1: Tile(input, tiles, axis), both scalars; now a repeat per dimension.
Status tile_to_repeats(Rewrite& r) {
  const Blob* tiles = r.content(r.input(1));
  const Blob* axis = r.content(r.input(2));
  const int rank = r.hint(r.input(0)).rank;
  const auto single = [](const Blob* b) { return b && b->dtype == DType::i64 && b->shape.element_count() == 1; };
  if (!single(tiles) || !single(axis) || rank < 0)
    return {Code::unsupported, "Tile of opset 1 needs constant i64 tiles and axis and an input of known rank",
            "convert the model to opset 6 or newer"};
  std::vector<int64_t> repeats(static_cast<size_t>(rank), 1);
  const int64_t at = *reinterpret_cast<const int64_t*>(axis->data);
  if (at < 0 || at >= rank) return {Code::attribute_mismatch, fmt::format("axis {} is outside the input's {} dimensions", at, rank)};
  repeats[static_cast<size_t>(at)] = *reinterpret_cast<const int64_t*>(tiles->data);
  r.node().inputs = {r.input(0), r.ints("repeats", repeats)};
  return {};
}

Status concat_default_axis(Rewrite& r) {
  if (!r.find("axis")) r.set("axis", int64_t{1});
  return {};
}

Status cast_target(Rewrite& r) {
  if (!r.find("to")) return missing_attribute("to");
  if (std::holds_alternative<std::string>(*r.find("to"))) {
    HEDDLE_TRY(const auto name, r.take_string("to"));
    r.set("to", static_cast<int64_t>(onnx_type_number(*name)));
    if (r.int_or("to", 0) == 0) return {Code::attribute_mismatch, fmt::format("there is no element type {}", quoted(*name))};
  }
  const int64_t to = r.int_or("to", 0);
  if (dtype_from_onnx(to) != DType::none) return {};
  return {Code::unsupported, fmt::format("a cast to element type {}", onnx_type_name(to)),
          "Heddle has f16, bf16, f32, f64, signed and unsigned integers of 8 to 64 bits and bool"};
}

Status dft_axis_to_input(Rewrite& r) {
  HEDDLE_TRY(const auto axis, r.take_int("axis"));
  r.set_input(2, r.int_scalar("axis", axis.value_or(1)));
  return {};
}

Status scatter_to_elements(Rewrite& r) {
  r.node().type = "ScatterElements";
  return {};
}

// Opset 1 wrote the norm's order as a float.
Status integral_norm(Rewrite& r) {
  if (!r.find("p") || !std::holds_alternative<double>(*r.find("p"))) return {};
  HEDDLE_TRY(const auto p, r.take_float("p"));
  if (*p != std::floor(*p) || *p < 1 || *p > 1e6) return {Code::unsupported, fmt::format("a norm of order {}", shortest(*p)), {}};
  r.set("p", static_cast<int64_t>(*p));
  return {};
}

// Opset < 7 declared by `output_sequence` whether output 0 is wanted; the list of outputs declares it too.
Status recurrent_sequence(Rewrite& r) {
  r.drop("output_sequence");
  return {};
}

Status selu_constants(Rewrite& r) {
  if (!r.find("alpha")) r.set("alpha", double{1.6732f});
  if (!r.find("gamma")) r.set("gamma", double{1.0507f});
  return {};
}

Status refuse_scan_8(Rewrite&) {
  return {Code::unsupported, "Scan of opset 8 works on batches of sequences", "convert the model to opset 9 or newer"};
}

}  // namespace heddle::importer
