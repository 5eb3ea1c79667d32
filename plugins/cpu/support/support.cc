// Error sentences, strides and formats that the shape, movement and indexing operators share. Pure.
#include "support/support.h"

#include <cstdio>

#include "support/scalar.h"

namespace heddle::cpu {
namespace {

std::string element_text(const heddle_tensor& tensor, int64_t i) {
  if ((HEDDLE_DTYPE_BIT(tensor.dtype) & float_dtypes) == 0)
    return with_dtype(tensor.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>)
        return std::to_string(static_cast<const T*>(tensor.data)[i]);
      else
        return std::string();
    });
  char text[32];
  const int length = std::snprintf(text, sizeof(text), "%g", number_at(tensor, i));
  return {text, static_cast<size_t>(length)};
}

std::string content_text(const heddle_tensor* tensor) {
  if (!tensor) return "absent";
  constexpr int64_t most = 16;
  std::string text = "[";
  for (int64_t i = 0; i < std::min(tensor->element_count, most); ++i) text += (i ? ", " : "") + element_text(*tensor, i);
  return text + (tensor->element_count > most ? ", ...]" : "]");
}

}  // namespace

Status axis_outside(const char* what, int64_t axis, int rank) {
  if (rank == 0) return invalid(std::string(what) + " is " + std::to_string(axis) + " but the input is a scalar");
  return invalid(std::string(what) + " is " + std::to_string(axis) + ", expected a number in [" + std::to_string(-rank) + ", " +
                 std::to_string(rank - 1) + "] for an input of rank " + std::to_string(rank));
}

Status normalize_axes(const char* what, const std::vector<int64_t>& axes, int rank, std::vector<int>* normalized) {
  normalized->clear();
  for (int64_t axis : axes) {
    int position = 0;
    if (!normalize_axis(axis, rank, &position)) return axis_outside(what, axis, rank);
    if (std::find(normalized->begin(), normalized->end(), position) != normalized->end())
      return invalid(std::string(what) + " names axis " + std::to_string(position) + " twice");
    normalized->push_back(position);
  }
  return {};
}

Status axis_set(const char* what, const heddle_tensor* axes, int rank, uint32_t* set) {
  *set = 0;
  for (int64_t i = 0; axes && i < axes->element_count; ++i) {
    int axis = 0;
    if (!normalize_axis(integer_at(*axes, i), rank, &axis)) return axis_outside(what, integer_at(*axes, i), rank);
    if (*set >> axis & 1) return invalid(std::string(what) + " names axis " + std::to_string(axis) + " twice");
    *set |= 1u << axis;
  }
  return {};
}

Status other_content(std::initializer_list<Operand> operands, const Status& rule, Dims given, Dims prepared) {
  std::string text = "with ";
  for (const Operand& operand : operands)
    text += (&operand == operands.begin() ? "" : ", ") + std::string(operand.name) + " " + content_text(operand.content);
  text += rule.ok() ? " the output would be " + dims_text(given) : ": " + rule.text;
  return invalid(text + ", but it was prepared as " + dims_text(prepared) + ": prepare again with this content");
}

Status check_rank(size_t rank) {
  if (rank <= HEDDLE_MAX_RANK) return {};
  return invalid("the output would have " + std::to_string(rank) + " dimensions, at most " + std::to_string(HEDDLE_MAX_RANK) +
                 " are possible");
}

Status not_one_dimensional(const char* operand, Dims dims) {
  return invalid(std::string(operand) + " has shape " + dims_text(dims) + ", expected one dimension");
}

Status index_outside(int64_t index, int64_t bound, int axis) {
  return invalid("index " + std::to_string(index) + " is outside [" + std::to_string(-bound) + ", " + std::to_string(bound - 1) +
                 "]: axis " + std::to_string(axis) + " has " + std::to_string(bound) + " elements");
}

void strides_of(const heddle_tensor& tensor, int64_t* strides) {
  if (tensor.layout.rank != tensor.rank) {
    dense_strides(dims_of(tensor), strides);
    return;
  }
  int64_t stride = 1;
  for (int i = tensor.rank - 1; i >= 0; --i) {
    strides[tensor.layout.order[i]] = stride;
    stride *= tensor.dims[tensor.layout.order[i]];
  }
}

heddle_layout channels_last(int rank) {
  heddle_layout layout = {};
  layout.rank = static_cast<uint8_t>(rank);
  for (int i = 1; i + 1 < rank; ++i) layout.order[i] = static_cast<uint8_t>(i + 1);
  layout.order[rank - 1] = 1;
  return layout;
}

std::vector<heddle_format> uniform_formats(const CreateContext& context, uint32_t inputs, uint32_t outputs) {
  heddle_format row_major = {};
  row_major.struct_size = sizeof(row_major);
  std::vector<heddle_format> choices = {row_major};
  const int rank = context.input(0)->rank;
  if (rank < 3 || rank > 5 || inputs > HEDDLE_FORMAT_PORTS || outputs > HEDDLE_FORMAT_PORTS) return choices;
  heddle_format last = row_major;
  for (uint32_t i = 0; i < inputs; ++i) last.inputs[i] = channels_last(rank);
  for (uint32_t i = 0; i < outputs; ++i) last.outputs[i] = channels_last(rank);
  choices.push_back(last);
  return choices;
}

}  // namespace heddle::cpu
