#include "onnx/operators/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace heddle::importer {
namespace {

// clang-format off
constexpr OperatorVersion operator_versions[] = {
    {"Abs", 13}, {"Acos", 7}, {"Acosh", 9}, {"Add", 14}, {"AffineGrid", 20}, {"And", 7}, {"ArgMax", 13}, {"ArgMin", 13}, {"Asin", 7},
    {"Asinh", 9}, {"Atan", 7}, {"Atanh", 9}, {"AveragePool", 19}, {"BatchNormalization", 15}, {"Bernoulli", 15}, {"BitShift", 11},
    {"BitwiseAnd", 18}, {"BitwiseNot", 18}, {"BitwiseOr", 18}, {"BitwiseXor", 18}, {"BlackmanWindow", 17}, {"Cast", 21}, {"CastLike", 21},
    {"Ceil", 13}, {"Celu", 12}, {"CenterCropPad", 18}, {"Clip", 13}, {"Col2Im", 18}, {"Compress", 11}, {"Concat", 13},
    {"ConstantOfShape", 21}, {"Conv", 11}, {"ConvInteger", 10}, {"ConvTranspose", 11}, {"Cos", 7}, {"Cosh", 9}, {"CumSum", 14},
    {"DFT", 20}, {"DeformConv", 19}, {"DepthToSpace", 13}, {"DequantizeLinear", 21}, {"Det", 11}, {"Div", 14}, {"Dropout", 13},
    {"DynamicQuantizeLinear", 11}, {"Einsum", 12}, {"Elu", 6}, {"Equal", 19}, {"Erf", 13}, {"Exp", 13}, {"Expand", 13}, {"EyeLike", 9},
    {"Flatten", 21}, {"Floor", 13}, {"GRU", 14}, {"Gather", 13}, {"GatherElements", 13}, {"GatherND", 13}, {"Gelu", 20}, {"Gemm", 13},
    {"GlobalAveragePool", 1}, {"GlobalLpPool", 2}, {"GlobalMaxPool", 1}, {"Greater", 13}, {"GreaterOrEqual", 16}, {"GridSample", 20},
    {"GroupNormalization", 21}, {"HammingWindow", 17}, {"HannWindow", 17}, {"HardSigmoid", 6}, {"HardSwish", 14}, {"Hardmax", 13},
    {"Identity", 21}, {"If", 21}, {"InstanceNormalization", 6}, {"IsInf", 20}, {"IsNaN", 20}, {"LRN", 13}, {"LSTM", 14},
    {"LayerNormalization", 17}, {"LeakyRelu", 16}, {"Less", 13}, {"LessOrEqual", 16}, {"Log", 13}, {"LogSoftmax", 13}, {"Loop", 21},
    {"LpNormalization", 1}, {"LpPool", 18}, {"MatMul", 13}, {"MatMulInteger", 10}, {"Max", 13}, {"MaxPool", 12}, {"MaxRoiPool", 1},
    {"MaxUnpool", 11}, {"Mean", 13}, {"MeanVarianceNormalization", 13}, {"MelWeightMatrix", 17}, {"Min", 13}, {"Mish", 18}, {"Mod", 13},
    {"Mul", 14}, {"Multinomial", 7}, {"Neg", 13}, {"NegativeLogLikelihoodLoss", 13}, {"NonMaxSuppression", 11}, {"NonZero", 13},
    {"Not", 1}, {"OneHot", 11}, {"Or", 7}, {"PRelu", 16}, {"Pad", 21}, {"Pow", 15}, {"QLinearConv", 10}, {"QLinearMatMul", 21},
    {"QuantizeLinear", 21}, {"RNN", 14}, {"RandomNormal", 1}, {"RandomNormalLike", 1}, {"RandomUniform", 1}, {"RandomUniformLike", 1},
    {"Range", 11}, {"Reciprocal", 13}, {"ReduceL1", 18}, {"ReduceL2", 18}, {"ReduceLogSum", 18}, {"ReduceLogSumExp", 18},
    {"ReduceMax", 20}, {"ReduceMean", 18}, {"ReduceMin", 20}, {"ReduceProd", 18}, {"ReduceSum", 13}, {"ReduceSumSquare", 18},
    {"Relu", 14}, {"Reshape", 21}, {"Resize", 19}, {"ReverseSequence", 10}, {"RoiAlign", 16}, {"Round", 11}, {"STFT", 17}, {"Scan", 21},
    {"ScatterElements", 18}, {"ScatterND", 18}, {"Selu", 6}, {"Shape", 21}, {"Shrink", 9}, {"Sigmoid", 13}, {"Sign", 13}, {"Sin", 7},
    {"Sinh", 9}, {"Size", 21}, {"Slice", 13}, {"Softmax", 13}, {"SoftmaxCrossEntropyLoss", 13}, {"Softplus", 1}, {"Softsign", 1},
    {"SpaceToDepth", 13}, {"Split", 18}, {"Sqrt", 13}, {"Squeeze", 21}, {"Sub", 14}, {"Sum", 13}, {"Tan", 7}, {"Tanh", 13},
    {"TfIdfVectorizer", 9}, {"ThresholdedRelu", 10}, {"Tile", 13}, {"TopK", 11}, {"Transpose", 21}, {"Trilu", 14}, {"Unique", 11},
    {"Unsqueeze", 21}, {"Where", 16}, {"Xor", 7},
};

constexpr Legalisation legalisation_rows[] = {
    {"Add", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"And", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"BatchNormalization", 1, 14, batch_normalisation_inference, "`is_test` dropped; one output: inference, more: training"},
    {"Cast", 1, 22, cast_target, "`to` as text (opset 1) → number; types that Heddle has not are refused"},
    {"Clip", 1, 11, clip_to_inputs, "`min`, `max` → inputs"},
    {"Concat", 1, 4, concat_default_axis, "default `axis` 1 made explicit"},
    {"DFT", 17, 20, dft_axis_to_input, "`axis` → input, its default 1 made explicit"},
    {"Div", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"Dropout", 1, 12, dropout, "inference → Identity (mask: all ones); `is_test` 0 → training_mode input"},
    {"Dropout", 12, 22, dropout_modes, "constant false or absent training_mode → Identity (mask: all ones)"},
    {"Equal", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"GRU", 1, 7, recurrent_sequence, "`output_sequence` dropped"},
    {"Gemm", 1, 7, drop_broadcast, "`broadcast` dropped"},
    {"GlobalLpPool", 1, 2, integral_norm, "`p` float → int"},
    {"Greater", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"GridSample", 16, 20, grid_sample_names, "modes bilinear, bicubic → linear, cubic"},
    {"GroupNormalization", 18, 21, group_scales_to_channels, "scale and bias per group → per channel"},
    {"Hardmax", 1, 13, coerced_softmax, "coerced to 2-D: Flatten, Hardmax, Reshape unless `axis` is the last"},
    {"LSTM", 1, 7, recurrent_sequence, "`output_sequence` dropped"},
    {"Less", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"LogSoftmax", 1, 13, coerced_softmax, "coerced to 2-D: Flatten, LogSoftmax, Reshape unless `axis` is the last"},
    {"LpPool", 1, 2, integral_norm, "`p` float → int"},
    {"Mul", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"Or", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"PRelu", 1, 7, slope_to_channels, "slope [C] → [C, 1, ...]"},
    {"Pad", 1, 11, pad_to_inputs, "`pads`, `value` → inputs"},
    {"Pow", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"RNN", 1, 7, recurrent_sequence, "`output_sequence` dropped"},
    {"ReduceL1", 1, 18, attribute_axes_to_input, "`axes` → input"},
    {"ReduceL2", 1, 18, attribute_axes_to_input, "`axes` → input"},
    {"ReduceLogSum", 1, 18, attribute_axes_to_input, "`axes` → input"},
    {"ReduceLogSumExp", 1, 18, attribute_axes_to_input, "`axes` → input"},
    {"ReduceMax", 1, 18, attribute_axes_to_input, "`axes` → input"},
    {"ReduceMean", 1, 18, attribute_axes_to_input, "`axes` → input"},
    {"ReduceMin", 1, 18, attribute_axes_to_input, "`axes` → input"},
    {"ReduceProd", 1, 18, attribute_axes_to_input, "`axes` → input"},
    {"ReduceSum", 1, 13, attribute_axes_to_input, "`axes` → input"},
    {"ReduceSumSquare", 1, 18, attribute_axes_to_input, "`axes` → input"},
    {"Reshape", 1, 5, reshape_shape_to_input, "`shape` → input"},
    {"Resize", 10, 11, resize_10, "coordinates asymmetric, nearest rounds down (up when shrinking)"},
    {"Resize", 11, 22, resize_empty_inputs, "empty roi, scales, sizes → absent"},
    {"RoiAlign", 10, 16, roi_align_mode, "default mode output_half_pixel made explicit"},
    {"Scan", 8, 9, refuse_scan_8, "refused: batched Scan"},
    {"Scatter", 9, 22, scatter_to_elements, "→ ScatterElements"},
    {"Selu", 1, 6, selu_constants, "rounder default constants made explicit"},
    {"Slice", 1, 10, slice_to_inputs, "`starts`, `ends`, `axes` → inputs"},
    {"Softmax", 1, 13, coerced_softmax, "coerced to 2-D: Flatten, Softmax, Reshape unless `axis` is the last"},
    {"Split", 1, 18, split_sizes_to_input, "`split` → input; none → `num_outputs`"},
    {"Squeeze", 1, 13, attribute_axes_to_input, "`axes` → input"},
    {"Sub", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"Tile", 1, 6, tile_to_repeats, "`tiles`, `axis` → repeats"},
    {"TopK", 1, 10, top_k_to_input, "`k` → input"},
    {"Unsqueeze", 1, 13, attribute_axes_to_input, "`axes` → input"},
    {"Upsample", 1, 22, upsample_to_resize, "→ Resize, asymmetric, rounding down"},
    {"Xor", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
};
// clang-format on

struct Missing {
  std::string_view type;
  std::string_view why;
};
constexpr Missing missing[] = {
    {"ConcatFromSequence", "works on sequences"}, {"ImageDecoder", "decodes image files"},      {"Optional", "works on optionals"},
    {"OptionalGetElement", "works on optionals"}, {"OptionalHasElement", "works on optionals"}, {"RegexFullMatch", "works on strings"},
    {"SequenceAt", "works on sequences"},         {"SequenceConstruct", "works on sequences"},  {"SequenceEmpty", "works on sequences"},
    {"SequenceErase", "works on sequences"},      {"SequenceInsert", "works on sequences"},     {"SequenceLength", "works on sequences"},
    {"SequenceMap", "works on sequences"},        {"SplitToSequence", "works on sequences"},    {"StringConcat", "works on strings"},
    {"StringNormalizer", "works on strings"},     {"StringSplit", "works on strings"}};

template <class Row, size_t n>
const Row* find_row(const Row (&rows)[n], std::string_view type) {
  const Row* row = std::lower_bound(rows, rows + n, type, [](const Row& r, std::string_view t) { return r.type < t; });
  return row != rows + n && row->type == type ? row : nullptr;
}

}  // namespace

std::span<const OperatorVersion> operators() {
  return operator_versions;
}
std::span<const Legalisation> legalisations() {
  return legalisation_rows;
}

int32_t implemented_version(std::string_view type) {
  const OperatorVersion* row = find_row(operator_versions, type);
  return row ? row->since : 0;
}

const Legalisation* find_legalisation(std::string_view type, int32_t opset) {
  const Legalisation* end = std::end(legalisation_rows);
  for (const Legalisation* row = find_row(legalisation_rows, type); row && row != end && row->type == type; ++row)
    if (row->first <= opset && opset < row->before) return row;
  return nullptr;
}

bool is_known(std::string_view type, int32_t opset) {
  return implemented_version(type) > 0 || find_legalisation(type, opset) != nullptr || type == "Constant";  // a value in nets
}

std::string_view why_not(std::string_view type) {
  const Missing* row = find_row(missing, type);
  return row ? row->why : std::string_view();
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const OperatorVersion& row : operator_versions) names.emplace_back(row.type);
  for (const Legalisation& row : legalisation_rows)
    if (implemented_version(row.type) == 0) names.emplace_back(row.type);
  return names;
}

std::string operator_table() {
  std::string out = "| operator | since | models of older opsets |\n| --- | --- | --- |\n";
  for (const std::string& name : known_names()) {
    const int32_t since = implemented_version(name);
    std::string changes;
    for (const Legalisation& row : legalisation_rows)
      if (row.type == name)
        changes += fmt::format("{}{}–{}: {}", changes.empty() ? "" : "; ", row.first, std::min(row.before - 1, newest_opset), row.effect);
    out += fmt::format("| {} | {} | {} |\n", name, since > 0 ? fmt::to_string(since) : "–", changes.empty() ? "as is" : changes);
  }
  return out;
}

}  // namespace heddle::importer
