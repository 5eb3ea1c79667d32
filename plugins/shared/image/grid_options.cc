#include "shared/image/grid_options.h"

#include <string>

namespace heddle::operators {

Status parse_grid_options(const Attributes& attributes, GridOptions* options) {
  const std::string mode = attributes.s("mode"), padding = attributes.s("padding_mode");
  options->align_corners = attributes.i("align_corners") != 0;
  if (mode == "nearest")
    options->interpolation = SampleInterpolation::nearest;
  else if (mode == "cubic")
    options->interpolation = SampleInterpolation::cubic;
  else if (mode != "linear")
    return invalid("mode is \"" + mode + "\", expected linear, nearest or cubic");
  if (padding == "border")
    options->padding = SamplePadding::border;
  else if (padding == "reflection")
    options->padding = SamplePadding::reflection;
  else if (padding != "zeros")
    return invalid("padding_mode is \"" + padding + "\", expected zeros, border or reflection");
  return {};
}

}  // namespace heddle::operators
