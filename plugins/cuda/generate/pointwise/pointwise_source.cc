#include "generate/pointwise/pointwise_source.h"

#include "generate/dtype_names.h"
#include "generate/pointwise/element_source.h"

namespace heddle::cuda {
namespace {

using plugin::Status;

std::string number(size_t i) {
  return std::to_string(i);
}

bool by_strides(Access access) {
  return access == Access::repeated || access == Access::rows || access == Access::strided;
}

// Returns struct Parameters, the parameters of the launch.
std::string parameters_text(const PointwiseShape& shape) {
  std::string text = "struct Parameters {\n  " + std::string(stored_type(shape.output)) + "* y;\n";
  for (size_t i = 0; i < shape.inputs.size(); ++i)
    text += "  const " + std::string(stored_type(shape.inputs[i])) + "* x" + number(i) + ";\n";
  text += "  i64 count;\n";
  if (shape.rank > 0) text += "  i64 dims[" + number(static_cast<size_t>(shape.rank)) + "];\n";
  for (size_t i = 0; i < shape.inputs.size(); ++i)
    if (by_strides(shape.access[i])) text += "  i64 strides" + number(i) + "[" + number(static_cast<size_t>(shape.rank)) + "];\n";
  return text + "};\n";
}

// Returns the positions in each strided input of the element for output element `first`: one division for each dimension but the outermost.
std::string positions_text(const PointwiseShape& shape) {
  std::string text;
  bool any = false;
  for (size_t i = 0; i < shape.inputs.size(); ++i)
    if (by_strides(shape.access[i])) {
      text += "    Index at" + number(i) + " = 0;\n";
      any = true;
    }
  if (!any) return {};
  text += "    Index rest = first;\n";
  for (int axis = shape.rank; axis-- > 0;) {
    const std::string a = std::to_string(axis);
    const std::string position = axis > 0 ? "rest % (Index)p.dims[" + a + "]" : "rest";
    text += "    {\n      const Index position = " + position + ";\n";
    for (size_t i = 0; i < shape.inputs.size(); ++i)
      if (by_strides(shape.access[i])) text += "      at" + number(i) + " += position * (Index)p.strides" + number(i) + "[" + a + "];\n";
    if (axis > 0) text += "      rest /= (Index)p.dims[" + a + "];\n";
    text += "    }\n";
  }
  return text;
}

// Returns the reads of `width` elements of each input. A group of them lies in one row of the innermost dimension.
std::string reads_text(const PointwiseShape& shape, size_t i) {
  const std::string n = number(i), type = stored_type(shape.inputs[i]), pack = "Pack<" + type + ", W>";
  switch (shape.access[i]) {
    case Access::linear:
      return "    const " + pack + " v" + n + " = *(const " + pack + "*)(p.x" + n + " + first);\n";
    case Access::rows:
      return "    const " + pack + " v" + n + " = *(const " + pack + "*)(p.x" + n + " + at" + n + ");\n";
    case Access::scalar:
      return "    const " + type + " v" + n + " = *p.x" + n + ";\n";
    case Access::repeated:
      return "    const " + type + " v" + n + " = p.x" + n + "[at" + n + "];\n";
    default:
      return "    " + pack + " v" + n + ";\n    for (int e = 0; e < W; ++e) v" + n + ".element[e] = p.x" + n + "[at" + n +
             " + (Index)e * (Index)p.strides" + n + "[" + std::to_string(shape.rank - 1) + "]];\n";
  }
}

bool is_pack(Access access) {
  return access == Access::linear || access == Access::rows || access == Access::strided;
}

}  // namespace

Status pointwise_source(const expression::Program& program, const PointwiseShape& shape, const std::string& entry, std::string* text) {
  heddle_dtype arithmetic = shape.arithmetic;
  if (arithmetic == HEDDLE_DTYPE_NONE) HEDDLE_PLUGIN_CHECK(arithmetic_of(shape.inputs, shape.output, &arithmetic));
  std::string function;
  HEDDLE_PLUGIN_CHECK(element_function(program, arithmetic, "element", &function));
  const std::string compute = compute_type(arithmetic), stored = stored_type(shape.output);
  std::string call = "element(";
  for (size_t i = 0; i < shape.inputs.size(); ++i)
    call +=
        std::string(i > 0 ? ", " : "") + "To<" + compute + ">::from(v" + number(i) + (is_pack(shape.access[i]) ? ".element[e]" : "") + ")";
  call += ")";
  std::string reads;
  for (size_t i = 0; i < shape.inputs.size(); ++i) reads += reads_text(shape, i);
  bool divided = false;  // groups must lie in one row
  for (const Access access : shape.access) divided = divided || by_strides(access);
  const std::string width = std::to_string(shape.width);
  *text =
      "namespace " + entry + "_scope {\ntypedef " + std::string(shape.wide_index ? "u64" : "u32") + " Index;\n" + parameters_text(shape) +
      function + "template <int W>\nHEDDLE_INLINE void group_at(const Parameters& p, Index first) {\n" + positions_text(shape) + reads +
      "    Pack<" + stored + ", W> y;\n    for (int e = 0; e < W; ++e) y.element[e] = " + (shape.converts ? "Converted<" : "Stored<") +
      stored + ">::of(" + call + ");\n    *(Pack<" + stored + ", W>*)(p.y + first) = y;\n}\nHEDDLE_KERNEL(" + entry +
      ", Parameters, p) {\n"
      "  const Index groups = (Index)p.count / " +
      width +
      ", step = (Index)gridDim.x * blockDim.x, me = (Index)blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  for (Index group = me; group < groups; group += step) group_at<" +
      width + ">(p, group * " + width + ");\n" +
      (divided || shape.width == 1 ? ""
                                   : "  for (Index i = groups * " + width + " + me; i < (Index)p.count; i += step) group_at<1>(p, i);\n") +
      "}\n}\n";
  return {};
}

}  // namespace heddle::cuda
