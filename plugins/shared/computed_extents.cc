#include "shared/computed_extents.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <type_traits>

#include "shared/scalar.h"

namespace heddle::operators {

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

Status other_content(std::initializer_list<Operand> operands, const Status& rule, Dims given, Dims prepared) {
  std::string text = "with ";
  for (const Operand& operand : operands)
    text += (&operand == operands.begin() ? "" : ", ") + std::string(operand.name) + " " + content_text(operand.content);
  text += rule.ok() ? " the output would be " + dims_text(given) : ": " + rule.text;
  return invalid(text + ", but it was prepared as " + dims_text(prepared) + ": prepare again with this content");
}

}  // namespace heddle::operators
