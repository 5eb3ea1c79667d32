#include "onnx/graph/hints.h"

#include <algorithm>
#include <array>

#include "onnx/tensors/types.h"

namespace heddle::importer {
namespace {

using TypeName = std::string_view;

template <size_t n>
bool among(const std::array<TypeName, n>& sorted, std::string_view type) {
  return std::binary_search(sorted.begin(), sorted.end(), type);
}

// Output 0 has the dtype and the rank of input 0.
constexpr std::array<TypeName, 63> like_input = {
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "AveragePool",
    "BatchNormalization",
    "BitwiseNot",
    "Ceil",
    "Celu",
    "Clip",
    "Concat",
    "Conv",
    "ConvTranspose",
    "Cos",
    "Cosh",
    "CumSum",
    "DepthToSpace",
    "Dropout",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "Gelu",
    "GlobalAveragePool",
    "GlobalLpPool",
    "GlobalMaxPool",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "Identity",
    "InstanceNormalization",
    "LRN",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "LpNormalization",
    "LpPool",
    "MaxPool",
    "MeanVarianceNormalization",
    "Mish",
    "Neg",
    "PRelu",
    "Pad",
    "Reciprocal",
    "Relu",
    "Resize",
    "ReverseSequence",
    "Round",
    "ScatterElements",
    "ScatterND",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Slice",
    "Softmax",
};
constexpr std::array<TypeName, 12> more_like_input = {"Softplus", "Softsign", "SpaceToDepth",    "Split", "Sqrt",      "Tan",
                                                      "Tanh",     "TfIdf",    "ThresholdedRelu", "Tile",  "Transpose", "Trilu"};
// Output 0 has the largest rank among the inputs and the dtype of input 0.
constexpr std::array<TypeName, 15> broadcasting = {"Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max", "Mean",
                                                   "Min", "Mod", "Mul",        "Or",        "Pow",        "Sub", "Sum"};
constexpr std::array<TypeName, 5> comparisons = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"};
constexpr std::array<TypeName, 10> reductions = {"ReduceL1",   "ReduceL2",  "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                                                 "ReduceMean", "ReduceMin", "ReduceProd",   "ReduceSum",       "ReduceSumSquare"};

int64_t int_of(const std::vector<Attribute>& attributes, std::string_view name, int64_t otherwise) {
  for (const Attribute& a : attributes)
    if (a.name == name && std::holds_alternative<int64_t>(a.value)) return std::get<int64_t>(a.value);
  return otherwise;
}

int broadcast_rank(const std::vector<Hint>& inputs) {
  int rank = 0;
  for (const Hint& input : inputs) {
    if (input.rank < 0) return -1;
    rank = std::max(rank, input.rank);
  }
  return rank;
}

// Elements of a constant list (axes, shape), -1 when unknown.
int length_of(const Blob* content) {
  return content && content->shape.rank() == 1 ? static_cast<int>(std::min<int64_t>(content->shape[0], 64)) : -1;
}

struct Context {
  std::string_view type;
  const std::vector<Hint>& inputs;
  const std::vector<const Blob*>& contents;
  const std::vector<Attribute>& attributes;
  Hint input(size_t i) const { return i < inputs.size() ? inputs[i] : Hint{}; }
  const Blob* content(size_t i) const { return i < contents.size() ? contents[i] : nullptr; }
};

int reduced_rank(const Context& c) {
  if (c.input(0).rank < 0 || int_of(c.attributes, "keepdims", 1) != 0) return c.input(0).rank;
  if (c.inputs.size() < 2) return 0;
  const int axes = length_of(c.content(1));
  return axes < 0 ? -1 : std::max(0, c.input(0).rank - axes);
}

int shifted_rank(const Context& c, int sign) {
  const int axes = length_of(c.content(1));
  return c.input(0).rank < 0 || axes < 0 ? -1 : c.input(0).rank + sign * axes;
}

int matmul_rank(const Context& c) {
  const int a = c.input(0).rank;
  const int b = c.input(1).rank;
  return a < 2 || b < 2 ? -1 : std::max(a, b);
}

// Ranks of operators that change it; -1 for all others.
int changed_rank(const Context& c) {
  if (c.type == "Flatten" || c.type == "Gemm") return 2;
  if (c.type == "Reshape") return length_of(c.content(1));
  if (c.type == "Squeeze") return shifted_rank(c, -1);
  if (c.type == "Unsqueeze") return shifted_rank(c, 1);
  if (c.type == "MatMul") return matmul_rank(c);
  if (c.type == "Gather" && c.input(0).rank > 0 && c.input(1).rank >= 0) return c.input(0).rank + c.input(1).rank - 1;
  if (c.type == "Expand" && length_of(c.content(1)) >= 0 && c.input(0).rank >= 0) return std::max(length_of(c.content(1)), c.input(0).rank);
  return -1;
}

constexpr std::array<TypeName, 8> known_dtype = {"Expand", "Flatten", "Gather", "Gemm", "MatMul", "Reshape", "Squeeze", "Unsqueeze"};

}  // namespace

Hint hint_of(std::string_view type, const std::vector<Hint>& inputs, const std::vector<const Blob*>& contents,
             const std::vector<Attribute>& attributes) {
  const Context c{type, inputs, contents, attributes};
  if (among(like_input, type) || among(more_like_input, type)) return c.input(0);
  if (among(broadcasting, type)) return {c.input(0).dtype, broadcast_rank(inputs)};
  if (among(comparisons, type)) return {DType::boolean, broadcast_rank(inputs)};
  if (among(reductions, type)) return {c.input(0).dtype, reduced_rank(c)};
  if (among(known_dtype, type)) return {c.input(0).dtype, changed_rank(c)};
  if (type == "Where") return {c.input(1).dtype, broadcast_rank(inputs)};
  if (type == "Cast") return {dtype_from_onnx(int_of(attributes, "to", 0)), c.input(0).rank};
  if (type == "CastLike") return {c.input(1).dtype, c.input(0).rank};
  if (type == "Shape") return {DType::i64, 1};
  if (type == "Size") return {DType::i64, 0};
  return {};
}

}  // namespace heddle::importer
