#include "shared/movement/scatter_reduction.h"

#include <string>

namespace heddle::operators {

Status parse_reduction(const Attributes& attributes, ScatterReduction* reduction) {
  static constexpr const char* names[] = {"none", "add", "mul", "max", "min"};
  const std::string text = attributes.s("reduction");
  for (int i = 0; i < 5; ++i)
    if (text == names[i]) return *reduction = static_cast<ScatterReduction>(i), Status();
  return invalid("reduction is \"" + text + "\", expected none, add, mul, max or min");
}

Status reduction_of(const CreateContext& context, ScatterReduction* reduction) {
  HEDDLE_PLUGIN_CHECK(parse_reduction(context.attributes, reduction));
  if (context.input(0)->dtype == HEDDLE_BOOL && *reduction == ScatterReduction::add) *reduction = ScatterReduction::max;
  if (context.input(0)->dtype == HEDDLE_BOOL && *reduction == ScatterReduction::mul) *reduction = ScatterReduction::min;
  return {};
}

}  // namespace heddle::operators
