#include "tile_cap_cases.h"

#include <set>

namespace heddle::testing {

std::shared_ptr<const RegistrySnapshot> cpu_plugin() {
  return cpu_registry().snapshot();
}

const std::map<std::string, const char*>& in_one_tile() {
  static const std::map<std::string, const char*> operators = {
      {"Shape", "reads extents alone"},
      {"Size", "reads extents alone"},
      {"Unique", "a sort: every element may come before every other; asks while it sorts"},
      {"NonZero", "where an element goes depends on all before it; asks"},
      {"Compress", "where a slice goes depends on all before it; asks"},
      {"NonMaxSuppression", "a box is dropped for any better one; asks for each box"},
      {"ScatterElements", "along axis 0 an update may go anywhere, and the last one wins; asks"},
      {"ScatterND", "slices too short to divide: an update may go anywhere, and the last one wins; asks"},
      {"MeanVarianceNormalization", "all elements of a mean come before the first result; asks"},
      {"heddle::ConvFilterGradient", "a filter has a sum over all images and positions; asks"},
      {"RNN", "a step depends on all before it; asks in each"},
      {"GRU", "a step depends on all before it; asks in each"},
      {"LSTM", "a step depends on all before it; asks in each"},
      {"heddle::RnnGradient", "a step depends on all behind it; asks in each"},
      {"heddle::GruGradient", "a step depends on all behind it; asks in each"},
      {"heddle::LstmGradient", "a step depends on all behind it; asks in each"},
      {"heddle::AllReduce", "the participant that comes last does the work of all, and looks whether the run of the first goes on"},
      {"heddle::Reduce", "the participant that comes last does the work of all, and looks whether the run of the first goes on"},
      {"heddle::Broadcast", "the participant that comes last does the work of all, and looks whether the run of the first goes on"},
      {"heddle::Barrier", "the participant that comes last does the work of all, and looks whether the run of the first goes on"},
      {"heddle::AllGather", "the participant that comes last does the work of all, and looks whether the run of the first goes on"},
      {"heddle::ReduceScatter", "the participant that comes last does the work of all, and looks whether the run of the first goes on"},
      {"heddle::AllToAll", "the participant that comes last does the work of all, and looks whether the run of the first goes on"},
      {"If", "runs a subnet, whose steps are stopped like any others"},
      {"Loop", "runs a subnet, whose steps are stopped like any others"},
      {"Scan", "runs a subnet, whose steps are stopped like any others"},
  };
  return operators;
}

static const Shape big = {int64_t{1} << 14, int64_t{1} << 16};  // 4 GiB of f32

std::vector<Case> cases() {
  const auto i64 = [](Shape shape) { return of(DType::i64, shape); };
  const Attribute axis0 = {"axis", int64_t{0}}, world = {"communicator", std::string("world")}, alone = {"size", int64_t{1}},
                  root = {"root", int64_t{0}};
  const Shape image = {64, 256, 512, 512}, row = {1, 1 << 28};
  const Ints k3 = {3, 3}, pads1 = {1, 1, 1, 1};
  std::vector<Case> all = {
      {"Reshape", {f32(big), ints({-1})}},
      {"Squeeze", {f32({1, 1 << 30}), ints({0})}},
      {"Unsqueeze", {f32(big), ints({0})}},
      {"Shape", {f32(big)}},
      {"Size", {f32(big)}},
      {"Loop", {}},
      {"ConstantOfShape", {ints({1 << 15, 1 << 16})}},
      {"Range", {scalar(0), scalar(int64_t{1} << 30), scalar(1)}},
      {"Transpose", {f32(big)}},
      {"Concat", {f32(big), f32(big)}, {axis0}},
      {"Split", {f32(big), ints({1 << 13, 1 << 13})}, {}, 2},
      {"Slice", {f32(big), ints({1}), ints({1 << 14}), ints({0})}},
      {"Expand", {f32({1, 1 << 16}), ints({1 << 14, 1 << 16})}},
      {"Tile", {f32(big), ints({2, 1})}},
      {"DepthToSpace", {f32(image)}, {{"blocksize", int64_t{2}}}},
      {"SpaceToDepth", {f32(image)}, {{"blocksize", int64_t{2}}}},
      {"Pad", {f32(big), ints({1, 1, 1, 1})}},
      {"Gather", {f32(big), i64({1 << 14})}},
      {"Gather", {f32({1000, 1 << 20}), i64({3})}},
      {"GatherElements", {f32(big), i64(big)}},
      {"GatherND", {f32(big), i64({1 << 14, 1})}},
      {"ScatterElements", {f32(big), i64(big), f32(big)}, {{"axis", int64_t{1}}}},
      {"ScatterND", {f32(big), i64({1 << 10, 1}), f32({1 << 10, 1 << 16})}},
      {"OneHot", {i64({1 << 20}), scalar(1000), f32({2})}},
      {"TopK", {f32(big), ints({5})}, {}, 2},
      {"CumSum", {f32(big), scalar(0)}},
      {"Trilu", {f32({1 << 15, 1 << 15})}},
      {"ReverseSequence", {f32({1 << 10, 1 << 10, 1 << 10}), i64({1 << 10})}},
      {"Compress", {f32(big), of(DType::boolean, {1 << 14})}, {axis0}},
      {"RandomNormal", {}, {{"shape", Ints{1 << 14, 1 << 16}}}},
      {"RandomUniform", {}, {{"shape", Ints{1 << 14, 1 << 16}}}},
      {"Multinomial", {f32({1 << 20, 1000})}, {{"sample_size", int64_t{1000}}}},
      {"SgdUpdate", {f32(big), f32(big), f32({})}, {}, 1, "heddle"},
      {"StepIncrement", {i64({1})}, {}, 1, "heddle"},
      {"Shard", {f32(big)}, {{"part", int64_t{0}}, {"parts", int64_t{1}}}, 1, "heddle"},
      {"AllReduce", {f32(big)}, {world}, 1, "heddle"},
      {"Reduce", {f32(big)}, {world, root}, 1, "heddle"},
      {"Broadcast", {f32(big)}, {world, root}, 1, "heddle"},
      {"Barrier", {f32(big)}, {world}, 1, "heddle"},
      {"AllGather", {f32(big)}, {world, alone}, 1, "heddle"},
      {"ReduceScatter", {f32(big)}, {world, alone}, 1, "heddle"},
      {"AllToAll", {f32(big)}, {world, alone}, 1, "heddle"},
      {"MomentumUpdate", {f32(big), f32(big), f32(big), f32({})}, {}, 2, "heddle"},
      {"AdagradUpdate", {f32(big), f32(big), f32(big), f32({})}, {}, 2, "heddle"},
      {"RmsPropUpdate", {f32(big), f32(big), f32(big), f32({})}, {}, 2, "heddle"},
      {"AdamUpdate", {f32(big), f32(big), f32(big), f32(big), f32({}), i64({})}, {}, 3, "heddle"},
      {"ScatterAssign", {f32(big), i64({1 << 14}), f32(big)}, {}, 1, "heddle"},
      {"ScatterWeightedSum", {f32(big), f32({}), i64({1 << 14}), f32(big), f32({})}, {}, 1, "heddle"},
      {"SparseToDense", {i64({1 << 14}), f32(big), f32({1 << 14, 1})}, {}, 1, "heddle"},
      {"WeightedSum", {f32(big), f32({}), f32(big), f32({})}, {}, 1, "heddle"},
      {"SgdUpdateRows", {f32(big), i64({1 << 14}), f32(big), f32({})}, {}, 1, "heddle"},
      {"MomentumUpdateRows", {f32(big), f32(big), i64({1 << 14}), f32(big), f32({})}, {}, 2, "heddle"},
      {"AdagradUpdateRows", {f32(big), f32(big), i64({1 << 14}), f32(big), f32({})}, {}, 2, "heddle"},
      {"RmsPropUpdateRows", {f32(big), f32(big), i64({1 << 14}), f32(big), f32({})}, {}, 2, "heddle"},
      {"AdamUpdateRows", {f32(big), f32(big), f32(big), i64({1 << 14}), f32(big), f32({}), i64({})}, {}, 3, "heddle"},
      {"EmbeddingBag", {f32(big), i64({1 << 10, 16})}, {}, 1, "heddle"},
      {"EmbeddingBag", {f32(row), i64({1, 16})}, {}, 1, "heddle"},
      {"SparseLengthsSum", {f32(big), i64({1 << 14}), i64({1 << 10})}, {}, 1, "heddle"},
      {"SparseLengthsMean", {f32(big), i64({1 << 14}), i64({1 << 10})}, {}, 1, "heddle"},
      {"SparseLengthsWeightedSum", {f32(big), f32({1 << 14}), i64({1 << 14}), i64({1 << 10})}, {}, 1, "heddle"},
      {"BagRows", {f32({1 << 10, 1 << 16}), i64({1 << 14})}, {}, 1, "heddle"},
      {"BagWeightsGradient", {f32(big), i64({1 << 14}), i64({1 << 14}), f32({1 << 10, 1 << 16})}, {}, 1, "heddle"},
      {"NegativeLogLikelihoodLoss", {f32({1 << 20, 1000}), i64({1 << 20})}},
      {"SoftmaxCrossEntropyLoss", {f32({1 << 20, 1000}), i64({1 << 20})}},
      {"NegativeLogLikelihoodLossGradient", {f32({1 << 20, 1000}), i64({1 << 20}), f32({})}, {}, 1, "heddle"},
      {"SoftmaxCrossEntropyLossGradient", {f32({1 << 20, 1000}), i64({1 << 20}), f32({})}, {}, 1, "heddle"},
      {"LabelMeanGradient", {f32({}), i64({1 << 30})}, {}, 1, "heddle"},
      {"NonMaxSuppression", {f32({1, 1 << 20, 4}), f32({1, 80, 1 << 20})}},
      {"Einsum", {f32({10000, 10000}), f32({10000, 10000})}, {{"equation", std::string("ij,jk->ik")}}},
      {"Einsum", {f32({20000, 20000}), f32({20000, 20000})}, {{"equation", std::string("ij,kl->")}}},
      {"RNN", {f32({1000, 256, 1024}), f32({1, 1024, 1024}), f32({1, 1024, 1024})}},
      {"GRU", {f32({1000, 256, 1024}), f32({1, 3072, 1024}), f32({1, 3072, 1024})}},
      {"LSTM", {f32({1000, 256, 1024}), f32({1, 4096, 1024}), f32({1, 4096, 1024})}},
      {"RnnGradient", {f32({1000, 256, 1024}), f32({1, 1024, 1024})}, {}, 3, "heddle"},
      {"GruGradient", {f32({1000, 256, 4096}), f32({1, 3072, 1024})}, {}, 4, "heddle"},
      {"LstmGradient", {f32({1000, 256, 4096}), f32({1, 4096, 1024})}, {}, 5, "heddle"},
      {"GridSample", {f32({16, 64, 512, 512}), f32({16, 2048, 2048, 2})}},
      {"RoiAlign",
       {f32({16, 256, 64, 64}), f32({100000, 4}), i64({100000})},
       {{"output_height", int64_t{14}}, {"output_width", int64_t{14}}}},
      {"RoiAlign", {f32({1, 1, 64, 64}), f32({100000, 4}), i64({100000})}, {{"sampling_ratio", int64_t{4096}}}},
      {"Resize", {f32(image), {}, {}, ints({64, 256, 1024, 1024})}, {{"mode", std::string("linear")}}},
      {"SumTo", {f32(big), ints({1, 1 << 16})}, {}, 1, "heddle"},
      {"ScatterSlice", {f32(big), f32({1 << 13, 1 << 16}), ints({1 << 13}), ints({1 << 14})}, {}, 1, "heddle"},
      {"PadGradient", {f32(big), ints({(1 << 14) - 2, (1 << 16) - 2}), ints({1, 1, 1, 1})}, {{"mode", std::string("edge")}}, 1, "heddle"},
      {"ResizeGradient",
       {f32(image), ints({64, 256, 256, 256}), {}, {}, ints({64, 256, 512, 512})},
       {{"mode", std::string("linear")}},
       1,
       "heddle"},
      {"GridSampleInputGradient", {f32({16, 64, 2048, 2048}), ints({16, 64, 512, 512}), f32({16, 2048, 2048, 2})}, {}, 1, "heddle"},
      {"GridSampleGridGradient", {f32({16, 64, 2048, 2048}), f32({16, 64, 512, 512}), f32({16, 2048, 2048, 2})}, {}, 1, "heddle"},
      {"RoiAlignGradient", {f32({100000, 256, 14, 14}), ints({16, 256, 64, 64}), f32({100000, 4}), i64({100000})}, {}, 1, "heddle"},
      {"Pointwise", {f32(big), f32(big)}, {{"program", std::string("add(x0, exp(x1))")}}, 1, "heddle"},
      {"Cast", {f32(big)}, {{"to", int64_t{10}}}},
      {"BatchNormalization", {f32(image), f32({256}), f32({256}), f32({256}), f32({256})}},
      {"InstanceNormalization", {f32(image), f32({256}), f32({256})}},
      {"GroupNormalization", {f32(image), f32({256}), f32({256})}, {{"num_groups", int64_t{32}}}},
      {"LayerNormalization", {f32(big), f32({1 << 16})}},
      {"RMSNormalization", {f32(big), f32({1 << 16})}},
      {"BatchNormalizationGradient", {f32(image), f32(image), f32({256})}, {{"training_mode", int64_t{1}}}, 3, "heddle"},
      {"GroupNormalizationGradient", {f32(image), f32(image), f32({256})}, {}, 3, "heddle"},
      {"LayerNormalizationGradient", {f32(big), f32(big), f32({1 << 16})}, {}, 3, "heddle"},
      {"RMSNormalizationGradient", {f32(big), f32(big), f32({1 << 16})}, {}, 2, "heddle"},
      {"LRN", {f32(image)}, {{"size", int64_t{5}}}},
      {"LRN", {f32({1, 1 << 20, 32, 32})}, {{"size", int64_t{1} << 40}}},
      {"MeanVarianceNormalization", {f32(image)}},
      {"Conv", {f32(image), f32({256, 256, 3, 3})}, {{"pads", pads1}}},
      {"Conv", {f32({1, 2048, 100, 100}), f32({2048, 2048, 3, 3})}, {{"pads", pads1}}},
      {"Conv", {f32({1, 64, 4096, 4096}), f32({64, 1, 3, 3})}, {{"pads", pads1}, {"group", int64_t{64}}}},
      {"Conv", {f32({16, 16, 1 << 20}), f32({16, 16, 3})}},
      {"Conv", {of(DType::f16, image), of(DType::f16, {256, 256, 3, 3})}, {{"pads", pads1}}},
      {"ConvTranspose", {f32({1, 256, 512, 512}), f32({256, 256, 4, 4})}, {{"strides", Ints{2, 2}}, {"pads", pads1}}},
      {"ConvTranspose", {f32({1, 64, 1000, 1000}), f32({64, 64, 2, 2})}, {{"strides", Ints{2, 2}}}},
      {"ConvDataGradient", {f32(image), f32({256, 256, 3, 3}), ints({64, 256, 512, 512})}, {{"pads", pads1}}, 1, "heddle"},
      {"ConvDataGradient",
       {f32({1, 256, 256, 256}), f32({256, 256, 4, 4}), ints({1, 256, 512, 512})},
       {{"strides", Ints{2, 2}}, {"pads", pads1}},
       1,
       "heddle"},
      {"ConvFilterGradient", {f32(image), f32(image), ints({256, 256, 3, 3})}, {{"pads", pads1}}, 1, "heddle"},
      {"MaxPoolGradient", {f32(image), f32({64, 256, 510, 510})}, {{"kernel_shape", k3}}, 1, "heddle"},
      {"AveragePoolGradient", {f32({64, 256, 510, 510}), ints({64, 256, 512, 512})}, {{"kernel_shape", k3}}, 1, "heddle"},
      {"MatMul", {f32({20000, 20000}), f32({20000, 20000})}},
      {"MatMul", {f32({16, 1 << 20}), f32({1 << 20, 16})}},
      {"MatMul", {f32({1, 1 << 20}), f32({1 << 20, 4096})}},
      {"MatMul", {f32({1 << 16, 64, 64}), f32({1 << 16, 64, 64})}},
      {"MatMul", {f32({16, int64_t{1} << 28}), f32({int64_t{1} << 28, 16})}},
      {"MatMul", {of(DType::f64, {20000, 20000}), of(DType::f64, {20000, 20000})}},
      {"Gemm", {f32({20000, 20000}), f32({20000, 20000}), f32({20000})}},
      {"Gemm", {of(DType::i64, {20000, 20000}), of(DType::i64, {20000, 20000})}},
      {"MaxPool", {f32(image)}, {{"kernel_shape", Ints{13, 13}}}},
      {"AveragePool", {f32(image)}, {{"kernel_shape", k3}}},
      {"LpPool", {f32(image)}, {{"kernel_shape", k3}}},
      {"GlobalMaxPool", {f32(image)}},
      {"GlobalAveragePool", {f32(image)}},
      {"GlobalLpPool", {f32(image)}},
      {"ReduceSum", {f32(row)}},
      {"ReduceSum", {f32(big), ints({0})}},
      {"BitShift", {of(DType::u64, big), of(DType::u64, big)}, {{"direction", std::string("LEFT")}}},
      {"Where", {of(DType::boolean, big), f32(big), f32(big)}},
      {"CastLike", {f32(big), of(DType::f64, {})}},
      {"Dropout", {f32(big), {}, {}}, {}, 2},
      {"Clip", {f32(big), f32({}), f32({})}},
  };
  // All other operators get inputs of one large shape, in the first dtype of these that the port takes.
  std::set<std::string> given;
  for (const Case& c : all) given.insert(display_name(c.domain, c.type));
  for (const auto& schema : cpu_plugin()->plugins()[0]->operators) {
    if (given.count(display_name(schema.domain, schema.name)) > 0 || schema.has_shape_operand) continue;
    Case c = {schema.name, {}, {}, 1, schema.domain};
    for (uint32_t i = 0; i < schema.op->input_count; ++i) {
      const heddle_port& port = *schema.op->inputs[i];
      if (port.flags & HEDDLE_PORT_OPTIONAL) break;
      for (const DType dtype : {DType::f32, DType::i64, DType::boolean, DType::u8})
        if (port.dtypes & HEDDLE_DTYPE_BIT(static_cast<int>(dtype))) {
          c.inputs.push_back(of(dtype, big));
          break;
        }
    }
    all.push_back(c);
  }
  for (const char* type :
       {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"})
    for (const Ints& axes : {Ints{0}, Ints{1}}) all.push_back({type, {f32(big), ints(axes)}});
  return all;
}

}  // namespace heddle::testing
