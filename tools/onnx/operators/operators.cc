#include "onnx/operators/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace heddle::importer {
namespace {

constexpr int32_t always = newest_opset + 1;  // a Legalisation::before

// clang-format off
constexpr OperatorVersion operator_versions[] = {
    {"Abs", 13, 13}, {"Acos", 7, 22}, {"Acosh", 9, 22}, {"Add", 14, 14}, {"AffineGrid", 20, 20}, {"And", 7, 7}, {"ArgMax", 13, 13},
    {"ArgMin", 13, 13}, {"Asin", 7, 22}, {"Asinh", 9, 22}, {"Atan", 7, 22}, {"Atanh", 9, 22}, {"AveragePool", 19, 22},
    {"BatchNormalization", 15, 15}, {"Bernoulli", 15, 22}, {"BitShift", 11, 28}, {"BitwiseAnd", 18, 18}, {"BitwiseNot", 18, 18},
    {"BitwiseOr", 18, 18}, {"BitwiseXor", 18, 18}, {"BlackmanWindow", 17, 17}, {"Cast", 21, 28}, {"CastLike", 21, 25}, {"Ceil", 13, 13},
    {"Celu", 12, 28}, {"CenterCropPad", 18, 18}, {"Clip", 13, 13}, {"Col2Im", 18, 18}, {"Compress", 11, 28}, {"Concat", 13, 13},
    {"ConstantOfShape", 21, 25}, {"Conv", 11, 22}, {"ConvInteger", 10, 10}, {"ConvTranspose", 11, 22}, {"Cos", 7, 22}, {"Cosh", 9, 22},
    {"CumSum", 14, 14}, {"DFT", 20, 20}, {"DeformConv", 19, 22}, {"DepthToSpace", 13, 28}, {"DequantizeLinear", 21, 28}, {"Det", 11, 22},
    {"Div", 14, 14}, {"Dropout", 13, 22}, {"DynamicQuantizeLinear", 11, 11}, {"Einsum", 12, 28}, {"Elu", 6, 22}, {"Equal", 19, 19},
    {"Erf", 13, 13}, {"Exp", 13, 13}, {"Expand", 13, 13}, {"EyeLike", 9, 22}, {"Flatten", 21, 25}, {"Floor", 13, 13}, {"GRU", 14, 22},
    {"Gather", 13, 13}, {"GatherElements", 13, 13}, {"GatherND", 13, 13}, {"Gelu", 20, 20}, {"Gemm", 13, 13},
    {"GlobalAveragePool", 1, 22}, {"GlobalLpPool", 2, 22}, {"GlobalMaxPool", 1, 22}, {"Greater", 13, 13}, {"GreaterOrEqual", 16, 16},
    {"GridSample", 20, 22}, {"GroupNormalization", 21, 21}, {"HammingWindow", 17, 17}, {"HannWindow", 17, 17}, {"HardSigmoid", 6, 22},
    {"HardSwish", 14, 22}, {"Hardmax", 13, 13}, {"Identity", 21, 25}, {"If", 21, 25}, {"ImageDecoder", 20, 20}, {"InstanceNormalization", 6, 22},
    {"IsInf", 20, 20}, {"IsNaN", 20, 20}, {"LRN", 13, 13}, {"LSTM", 14, 22}, {"LayerNormalization", 17, 17}, {"LeakyRelu", 16, 16},
    {"Less", 13, 13}, {"LessOrEqual", 16, 16}, {"Log", 13, 13}, {"LogSoftmax", 13, 13}, {"Loop", 21, 25}, {"LpNormalization", 1, 22},
    {"LpPool", 18, 22}, {"MatMul", 13, 13}, {"MatMulInteger", 10, 10}, {"Max", 13, 13}, {"MaxPool", 12, 22}, {"MaxRoiPool", 1, 22},
    {"MaxUnpool", 11, 22}, {"Mean", 13, 13}, {"MeanVarianceNormalization", 13, 13}, {"MelWeightMatrix", 17, 17}, {"Min", 13, 13},
    {"Mish", 18, 22}, {"Mod", 13, 28}, {"Mul", 14, 14}, {"Multinomial", 7, 22}, {"Neg", 13, 13}, {"NegativeLogLikelihoodLoss", 13, 22},
    {"NonMaxSuppression", 11, 11}, {"NonZero", 13, 13}, {"Not", 1, 1}, {"OneHot", 11, 28}, {"Or", 7, 7}, {"PRelu", 16, 16},
    {"Pad", 21, 25}, {"Pow", 15, 15}, {"QLinearConv", 10, 10}, {"QLinearMatMul", 21, 21}, {"QuantizeLinear", 21, 28},
    {"RMSNormalization", 23, 23}, {"RNN", 14, 22}, {"RandomNormal", 1, 22}, {"RandomNormalLike", 1, 22}, {"RandomUniform", 1, 22},
    {"RandomUniformLike", 1, 22}, {"Range", 11, 27}, {"Reciprocal", 13, 13}, {"ReduceL1", 18, 18}, {"ReduceL2", 18, 18},
    {"ReduceLogSum", 18, 28}, {"ReduceLogSumExp", 18, 28}, {"ReduceMax", 20, 20}, {"ReduceMean", 18, 18}, {"ReduceMin", 20, 20},
    {"ReduceProd", 18, 18}, {"ReduceSum", 13, 13}, {"ReduceSumSquare", 18, 18}, {"Relu", 14, 14}, {"Reshape", 21, 25},
    {"Resize", 19, 19}, {"ReverseSequence", 10, 28}, {"RoiAlign", 16, 22}, {"Round", 11, 22}, {"STFT", 17, 17}, {"Scan", 21, 25},
    {"ScatterElements", 18, 18}, {"ScatterND", 18, 18}, {"Selu", 6, 22}, {"Shape", 21, 25}, {"Shrink", 9, 9}, {"Sigmoid", 13, 13},
    {"Sign", 13, 13}, {"Sin", 7, 22}, {"Sinh", 9, 22}, {"Size", 21, 25}, {"Slice", 13, 13}, {"Softmax", 13, 13},
    {"SoftmaxCrossEntropyLoss", 13, 13}, {"Softplus", 1, 22}, {"Softsign", 1, 22}, {"SpaceToDepth", 13, 28}, {"Split", 18, 18},
    {"Sqrt", 13, 13}, {"Squeeze", 21, 25}, {"Sub", 14, 14}, {"Sum", 13, 13}, {"Swish", 24, 24}, {"Tan", 7, 22}, {"Tanh", 13, 13},
    {"TfIdfVectorizer", 9, 9}, {"ThresholdedRelu", 10, 22}, {"Tile", 13, 13}, {"TopK", 11, 24}, {"Transpose", 21, 25}, {"Trilu", 14, 14},
    {"Unique", 11, 28}, {"Unsqueeze", 21, 25}, {"Where", 16, 16}, {"Xor", 7, 7},
};

constexpr Legalisation legalisation_rows[] = {
    {"Add", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"And", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"BatchNormalization", 1, 14, batch_normalisation_inference, "`is_test` dropped; one output: inference, more: training"},
    {"Cast", 1, always, cast_target, "`to` as text (opset 1) → number; types that Heddle has not are refused"},
    {"Clip", 1, 11, clip_to_inputs, "`min`, `max` → inputs"},
    {"Concat", 1, 4, concat_default_axis, "default `axis` 1 made explicit"},
    {"DFT", 17, 20, dft_axis_to_input, "`axis` → input, its default 1 made explicit"},
    {"Div", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"Dropout", 1, 12, dropout, "inference → Identity (mask: all ones); `is_test` 0 → training_mode input"},
    {"Dropout", 12, always, dropout_modes, "constant false or absent training_mode → Identity (mask: all ones)"},
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
    {"Resize", 11, always, resize_empty_inputs, "empty roi, scales, sizes → absent"},
    {"RoiAlign", 10, 16, roi_align_mode, "default mode output_half_pixel made explicit"},
    {"Scan", 8, 9, refuse_scan_8, "refused: batched Scan"},
    {"Scatter", 9, always, scatter_to_elements, "→ ScatterElements"},
    {"Selu", 1, 6, selu_constants, "rounder default constants made explicit"},
    {"Slice", 1, 10, slice_to_inputs, "`starts`, `ends`, `axes` → inputs"},
    {"Softmax", 1, 13, coerced_softmax, "coerced to 2-D: Flatten, Softmax, Reshape unless `axis` is the last"},
    {"Split", 1, 18, split_sizes_to_input, "`split` → input; none → `num_outputs`"},
    {"Squeeze", 1, 13, attribute_axes_to_input, "`axes` → input"},
    {"Sub", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
    {"Tile", 1, 6, tile_to_repeats, "`tiles`, `axis` → repeats"},
    {"TopK", 1, 10, top_k_to_input, "`k` → input"},
    {"Unsqueeze", 1, 13, attribute_axes_to_input, "`axes` → input"},
    {"Upsample", 1, always, upsample_to_resize, "→ Resize, asymmetric, rounding down"},
    {"Xor", 1, 7, align_broadcast, "`broadcast`, `axis` → Unsqueeze of the second operand"},
};
// clang-format on

constexpr NewAttribute new_attribute_rows[] = {
    {"Cast", "round_mode", 24, ""},                 // of f8e8m0
    {"CastLike", "round_mode", 24, ""},             // likewise
    {"DequantizeLinear", "output_dtype", 23, "0"},  // that of x_scale
    {"QuantizeLinear", "precision", 23, "0"},       // that of the scale
    {"Range", "stash_type", 27, "1"},               // f32
    {"SpaceToDepth", "mode", 28, "DCR"},
};

struct Missing {
  std::string_view type;
  std::string_view why;
};
constexpr Missing missing[] = {{"Attention", "is new in opset 23"},
                               {"BitCast", "is new in opset 26"},
                               {"CausalConvWithState", "is new in opset 27"},
                               {"ConcatFromSequence", "works on sequences"},
                               {"CumProd", "is new in opset 26"},
                               {"LinearAttention", "is new in opset 27"},
                               {"Optional", "works on optionals"},
                               {"OptionalGetElement", "works on optionals"},
                               {"OptionalHasElement", "works on optionals"},
                               {"RegexFullMatch", "works on strings"},
                               {"RotaryEmbedding", "is new in opset 23"},
                               {"SequenceAt", "works on sequences"},
                               {"SequenceConstruct", "works on sequences"},
                               {"SequenceEmpty", "works on sequences"},
                               {"SequenceErase", "works on sequences"},
                               {"SequenceInsert", "works on sequences"},
                               {"SequenceLength", "works on sequences"},
                               {"SequenceMap", "works on sequences"},
                               {"SplitToSequence", "works on sequences"},
                               {"StringConcat", "works on strings"},
                               {"StringNormalizer", "works on strings"},
                               {"StringSplit", "works on strings"},
                               {"SwiGLU", "is new in opset 28"},
                               {"TensorScatter", "is new in opset 24"}};

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
std::span<const NewAttribute> new_attributes() {
  return new_attribute_rows;
}

const NewAttribute* find_new_attribute(std::string_view type, std::string_view name, int32_t opset) {
  const auto* const row = std::find_if(std::begin(new_attribute_rows), std::end(new_attribute_rows),
                                       [&](const NewAttribute& a) { return a.type == type && a.name == name && opset >= a.since; });
  return row == std::end(new_attribute_rows) ? nullptr : row;
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
  std::string out = "| operator | since | the same until | models of other opsets |\n| --- | --- | --- | --- |\n";
  for (const std::string& name : known_names()) {
    const OperatorVersion* const version = find_row(operator_versions, name);
    std::string changes;
    const auto add = [&](const std::string& change) { changes += (changes.empty() ? "" : "; ") + change; };
    for (const Legalisation& row : legalisation_rows)
      if (row.type == name) add(fmt::format("{}–{}: {}", row.first, std::min(row.before - 1, newest_opset), row.effect));
    for (const NewAttribute& row : new_attribute_rows)
      if (row.type == name)
        add(fmt::format("{}–{}: `{}` {}", row.since, newest_opset, row.name,
                        row.ours.empty() ? std::string("dropped") : fmt::format("refused unless {}", row.ours)));
    out += fmt::format("| {} | {} | {} | {} |\n", name, version ? fmt::to_string(version->since) : "–",
                       version ? fmt::to_string(version->until) : "–", changes.empty() ? "as is" : changes);
  }
  return out;
}

}  // namespace heddle::importer
