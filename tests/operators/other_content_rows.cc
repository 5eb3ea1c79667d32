// Calls that work, by operator and input, and contents of the same shape that they were not prepared for.
#include "operators/other_content.h"

namespace heddle::testing {
namespace {

using Row = OtherContentRow;

void add_views(std::vector<Row>& rows) {
  const Tensor x = counted({2, 6});
  rows.push_back({"Reshape",
                  "shape",
                  call_of("Reshape", {x, ints({3, 4})}),
                  {ints({3, 3}), ints({1, 1}), ints({4, 3}), ints({300, 400}), ints({-1, 6}), ints({-1, -1}), ints({-7, 2}),
                   ints({most, most}), ints({least, 0}), ints({0, 6})}});
  rows.push_back({"Squeeze",
                  "axes",
                  call_of("Squeeze", {counted({1, 3, 1}), ints({0})}),
                  {ints({2}), ints({-1}), ints({1}), ints({3}), ints({least})}});
  rows.push_back({"Unsqueeze", "axes", call_of("Unsqueeze", {x, ints({0})}), {ints({2}), ints({-1}), ints({3}), ints({-4}), ints({most})}});
  rows.push_back({"Expand",
                  "shape",
                  call_of("Expand", {counted({1, 3}), ints({4, 3})}),
                  {ints({1, 3}), ints({4, 1}), ints({4000, 3}), ints({4, 2}), ints({-4, 3}), ints({most, 3}), ints({0, 3})}});
  rows.push_back({"Tile",
                  "repeats",
                  call_of("Tile", {x, ints({2, 3})}),
                  {ints({1, 1}), ints({3, 2}), ints({200, 300}), ints({-1, 3}), ints({most, most}), ints({0, 3})}});
  rows.push_back({"ConstantOfShape",
                  "input",
                  call_of("ConstantOfShape", {ints({3, 4})}),
                  {ints({4, 3}), ints({1, 1}), ints({300, 400}), ints({-3, 4}), ints({most, most}), ints({0, 0})}});
}

void add_ranges(std::vector<Row>& rows) {
  const auto range = [](const Tensor& start, const Tensor& limit, const Tensor& delta) { return call_of("Range", {start, limit, delta}); };
  const OperatorCall whole = range(number(0), number(9), number(2));
  rows.push_back({"Range", "start", whole, {number(5), number(-5000), number(most), number(least), number(1)}});
  rows.push_back({"Range", "limit", whole, {number(2), number(9000), number(-1), number(most), number(10)}});
  rows.push_back({"Range", "delta", whole, {number(4), number(1), number(0), number(-1), number(least)}});
  rows.push_back({"Range", "limit", range(scalar(0), scalar(3), scalar(0.5f)), {scalar(1), scalar(9000), scalar(nan), scalar(inf)}});
  const OperatorCall slice = call_of("Slice", {counted({5, 7}), ints({1, 1}), ints({4, 6}), ints({0, 1}), ints({1, 2})});
  rows.push_back({"Slice", "starts", slice, {ints({3, 5}), ints({-100, 0}), ints({least, most}), ints({2, 1}), ints({9, 9})}});
  rows.push_back({"Slice", "ends", slice, {ints({2, 2}), ints({most, most}), ints({least, least}), ints({4, 5}), ints({-1, -1})}});
  rows.push_back({"Slice", "axes", slice, {ints({1, 0}), ints({0, 0}), ints({2, 1}), ints({-3, 1}), ints({-2, -1})}});
  rows.push_back({"Slice", "steps", slice, {ints({2, 4}), ints({1, 1}), ints({0, 1}), ints({-1, -1}), ints({most, least})}});
  const OperatorCall empty = call_of("Slice", {counted({5}), ints({3}), ints({3})});
  rows.push_back({"Slice", "ends", empty, {ints({5}), ints({2})}});
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    const OperatorCall pad = call_of("Pad", {counted({3, 4}), ints({1, 2, 2, 1}), nullptr, ints({0, 1})}, {{"mode", std::string(mode)}});
    rows.push_back({"Pad",
                    "pads",
                    pad,
                    {ints({0, 0, 0, 0}), ints({100, 200, 200, 100}), ints({2, 1, 1, 2}), ints({-9, 0, 0, 0}), ints({most, 2, least, 1}),
                     ints({most, most, most, most}), ints({9, 2, -6, 1}), ints({-3, 2, 6, 1})}});
    rows.push_back({"Pad", "axes", pad, {ints({1, 0}), ints({0, 0}), ints({2, 1}), ints({least, 1}), ints({-2, -1})}});
  }
}

void add_folds(std::vector<Row>& rows) {
  for (const char* type : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
                           "ReduceLogSumExp", "ReduceSumSquare"})
    for (int64_t keep : {0, 1}) {
      rows.push_back({type,
                      "axes",
                      call_of(type, {counted({2, 1000}), ints({1})}, {{"keepdims", keep}}),
                      {ints({0}), ints({-2}), ints({-1}), ints({2}), ints({least})}});
      rows.push_back({type,
                      "axes",
                      call_of(type, {counted({3, 4, 5}), ints({0, 1})}, {{"keepdims", keep}}),
                      {ints({1, 2}), ints({1, 1}), ints({0, 9})}});
    }
  rows.push_back(
      {"CumSum", "axis", call_of("CumSum", {counted({3, 5}), number(0)}), {number(1), number(-2), number(2), number(-3), number(most)}});
  rows.push_back(
      {"Trilu", "k", call_of("Trilu", {counted({4, 5}), number(0)}), {number(-2), number(3), number(900), number(most), number(least)}});
  rows.push_back({"TopK",
                  "K",
                  call_of("TopK", {counted({3, 6}), ints({4})}, {}, 2),
                  {ints({1}), ints({6}), ints({7}), ints({-1}), ints({most}), ints({0})}});
  rows.push_back({"TopK", "K", call_of("TopK", {counted({3, 6}), ints({0})}, {}, 2), {ints({6}), ints({7}), ints({-1})}});
  const OperatorCall split = call_of("Split", {counted({2, 9}), ints({2, 3, 4})}, {{"axis", int64_t{1}}}, 3);
  rows.push_back({"Split",
                  "split",
                  split,
                  {ints({1, 3, 4}), ints({4, 3, 2}), ints({9, 9, 9}), ints({-2, 7, 4}), ints({0, 0, 9}), ints({most, most, 11})}});
  const OperatorCall hot = call_of("OneHot", {ints({0, 2, -1, 1}), number(3), floats({0, 1})});
  rows.push_back({"OneHot", "depth", hot, {number(1), number(3000), number(-3), number(0), number(most)}});
}

void add_pictures(std::vector<Row>& rows) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (int64_t antialias : {0, 1}) {
      if (antialias && mode[0] == 'n') continue;
      const std::vector<Attribute> how = {{"mode", std::string(mode)}, {"antialias", antialias}};
      const auto with = [&](std::vector<Attribute> more) { return more.insert(more.end(), how.begin(), how.end()), more; };
      const Tensor x = counted({1, 2, 9, 7});
      rows.push_back({"Resize",
                      "scales",
                      call_of("Resize", {x, nullptr, floats({1, 1, 0.5f, 0.6f})}, how),
                      {floats({1, 1, 0.2f, 0.2f}), floats({1, 1, 3, 9}), floats({1, 1, 0.52f, 0.61f}), floats({1, 1, nan, 1}),
                       floats({1, 1, -1, 1}), floats({1, 1, 0, 1}), floats({1e9f, 1e9f, 1e9f, 1e9f}), floats({1, 1, inf, 1e-30f})}});
      rows.push_back(
          {"Resize",
           "sizes",
           call_of("Resize", {x, nullptr, nullptr, ints({1, 2, 4, 5})}, how),
           {ints({1, 2, 2, 2}), ints({1, 2, 40, 50}), ints({1, 2, 5, 4}), ints({1, 2, -4, 5}), ints({most, 2, 4, 5}), ints({1, 2, 0, 0})}});
      const OperatorCall aspect =
          call_of("Resize", {x, nullptr, nullptr, ints({3, 5})},
                  with({{"axes", std::vector<int64_t>{2, 3}}, {"keep_aspect_ratio_policy", std::string("not_larger")}}));
      rows.push_back({"Resize", "sizes", aspect, {ints({3, 2}), ints({2, 5}), ints({1, 1}), ints({most, most}), ints({30, 50})}});
      const OperatorCall small = call_of("Resize", {counted({20, 3}), nullptr, nullptr, ints({1, 1})},
                                         with({{"keep_aspect_ratio_policy", std::string("not_smaller")}}));
      rows.push_back({"Resize", "sizes", small, {ints({10, 1}), ints({1, 0}), ints({0, 0}), ints({5, 1})}});
      const OperatorCall crop = call_of("Resize", {x, floats({0, 0, 0.1f, 0.1f, 1, 1, 0.9f, 0.9f}), nullptr, ints({1, 2, 4, 5})},
                                        with({{"coordinate_transformation_mode", std::string("tf_crop_and_resize")}}));
      rows.push_back({"Resize",
                      "roi",
                      crop,
                      {floats({0, 0, 0.4f, 0.4f, 1, 1, 0.5f, 0.5f}), floats({0, 0, -9, -9, 1, 1, 9, 9}),
                       floats({0, 0, nan, 0, 1, 1, 1, nan}), floats({0, 0, -inf, 0, 1, 1, inf, 1e30f})}});
    }
  const Tensor boxes = tensor<float>({1, 3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}),
               scores = tensor<float>({1, 2, 3}, {3, 2, 1, 1, 2, 3});
  const OperatorCall suppress = call_of("NonMaxSuppression", {boxes, scores, ints({1}), floats({0.5f}), floats({0})});
  rows.push_back({"NonMaxSuppression",
                  "max_output_boxes_per_class",
                  suppress,
                  {ints({0}), ints({2}), ints({3}), ints({most}), ints({-1}), ints({least})}});
  rows.push_back({"NonMaxSuppression", "iou_threshold", suppress, {floats({0}), floats({2}), floats({-1}), floats({nan})}});
  rows.push_back({"NonMaxSuppression", "score_threshold", suppress, {floats({2}), floats({-9}), floats({nan})}});
  const OperatorCall regions = call_of("RoiAlign", {counted({2, 1, 5, 5}), tensor<float>({2, 4}, {0, 0, 3, 3, 1, 1, 4, 4}), ints({0, 1})},
                                       {{"output_height", int64_t{2}}, {"output_width", int64_t{2}}});
  rows.push_back({"RoiAlign", "batch_indices", regions, {ints({0, 0}), ints({0, 2}), ints({-1, 0}), ints({most, least})}});
  rows.push_back({"RoiAlign",
                  "rois",
                  regions,
                  {tensor<float>({2, 4}, {-9, -9, 99, 99, nan, 0, 1, inf}), tensor<float>({2, 4}, {4, 4, 0, 0, 1, 1, 1, 1})}});
  const OperatorCall grid = call_of("GridSample", {counted({1, 1, 3, 4}), tensor<float>({1, 1, 2, 2}, {0, 0, 0.5f, -0.5f})});
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"}) {
      OperatorCall sample = grid;
      sample.attributes = {{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}};
      rows.push_back({"GridSample",
                      "grid",
                      sample,
                      {tensor<float>({1, 1, 2, 2}, {-1, 1, 1, -1}), tensor<float>({1, 1, 2, 2}, {-99, 99, 1e30f, -1e30f}),
                       tensor<float>({1, 1, 2, 2}, {nan, inf, -inf, nan})}});
    }
}

void add_indices(std::vector<Row>& rows) {
  const Tensor x = counted({4, 3});
  rows.push_back(
      {"Gather", "indices", call_of("Gather", {x, ints({0, 3})}), {ints({-4, -1}), ints({0, 4}), ints({-5, 0}), ints({most, least})}});
  rows.push_back({"GatherElements",
                  "indices",
                  call_of("GatherElements", {x, tensor<int64_t>({1, 3}, {0, 1, 3})}),
                  {tensor<int64_t>({1, 3}, {-4, -1, 0}), tensor<int64_t>({1, 3}, {0, 4, 0}), tensor<int64_t>({1, 3}, {least, most, 0})}});
  rows.push_back(
      {"GatherND",
       "indices",
       call_of("GatherND", {x, tensor<int64_t>({2, 2}, {0, 0, 3, 2})}),
       {tensor<int64_t>({2, 2}, {-4, -3, 0, 0}), tensor<int64_t>({2, 2}, {0, 3, 0, 0}), tensor<int64_t>({2, 2}, {most, 0, least, 0})}});
  rows.push_back({"ScatterElements",
                  "indices",
                  call_of("ScatterElements", {x, tensor<int64_t>({1, 3}, {0, 1, 3}), counted({1, 3})}),
                  {tensor<int64_t>({1, 3}, {-4, -1, 0}), tensor<int64_t>({1, 3}, {0, 4, 0}), tensor<int64_t>({1, 3}, {least, most, 0})}});
  rows.push_back({"ScatterND",
                  "indices",
                  call_of("ScatterND", {x, tensor<int64_t>({1, 1}, {2}), counted({1, 3})}),
                  {tensor<int64_t>({1, 1}, {-4}), tensor<int64_t>({1, 1}, {4}), tensor<int64_t>({1, 1}, {least})}});
  rows.push_back({"OneHot",
                  "indices",
                  call_of("OneHot", {ints({0, 2}), number(3), floats({0, 1})}),
                  {ints({-3, -4}), ints({3, most}), ints({least, 0})}});
  rows.push_back({"Compress",
                  "condition",
                  call_of("Compress", {x, booleans({4}, {1, 0, 1, 0})}, {{"axis", int64_t{0}}}),
                  {booleans({4}, {0, 0, 0, 0}), booleans({4}, {1, 1, 1, 1}), booleans({4}, {0, 1, 0, 1})}});
  rows.push_back({"Compress",
                  "condition",
                  call_of("Compress", {x, booleans({12}, {1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1})}),
                  {booleans({12}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), booleans({12}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})}});
  rows.push_back({"NonZero",
                  "X",
                  call_of("NonZero", {x}),
                  {tensor<float>({4, 3}, std::vector<float>(12, 1)), tensor<float>({4, 3}, std::vector<float>(12, 0))}});
  rows.push_back({"Unique",
                  "X",
                  call_of("Unique", {x}, {}, 4),
                  {tensor<float>({4, 3}, std::vector<float>(12, 1)), tensor<float>({4, 3}, std::vector<float>(12, nan))}});
  rows.push_back({"ReverseSequence",
                  "sequence_lens",
                  call_of("ReverseSequence", {x, ints({4, 2, 1})}),
                  {ints({0, 0, 0}), ints({5, 1, 1}), ints({-1, 1, 1}), ints({most, least, 1})}});
  for (const auto& [type, gates] : std::map<std::string, int64_t>{{"RNN", 1}, {"GRU", 3}, {"LSTM", 4}}) {
    const OperatorCall call = call_of(
        type, {counted({3, 2, 2}), counted({1, gates * 2, 2}), counted({1, gates * 2, 2}), nullptr, tensor<int32_t>({2}, {3, 1})}, {}, 1);
    const std::vector<Tensor> lengths = {tensor<int32_t>({2}, {0, 0}), tensor<int32_t>({2}, {4, 1}), tensor<int32_t>({2}, {-1, INT32_MIN})};
    rows.push_back({type, "sequence_lens", call, lengths});
    const std::string gradient = type == "RNN" ? "RnnGradient" : type == "GRU" ? "GruGradient" : "LstmGradient";
    OperatorCall back =
        call_of(gradient.c_str(), {counted({3, 2, gates == 3 ? 8 : gates * 2}), counted({1, gates * 2, 2}), tensor<int32_t>({2}, {3, 1})},
                {}, gates == 1 ? 3 : gates + 1);
    back.domain = "heddle";
    rows.push_back({gradient, "sequence_lens", back, lengths});
  }
  const auto loss = [&](const char* type, const char* port) {
    rows.push_back(
        {type, port, call_of(type, {counted({2, 3}), ints({0, 2})}), {ints({1, 1}), ints({3, 0}), ints({-1, 0}), ints({most, least})}});
  };
  loss("NegativeLogLikelihoodLoss", "target");
  loss("SoftmaxCrossEntropyLoss", "labels");
}

// Updates of tables by rows. All of them have the weights first.
void add_updates_by_rows(std::vector<Row>& rows) {
  for (const auto& [type, states] : std::map<std::string, size_t>{
           {"SgdUpdateRows", 0}, {"MomentumUpdateRows", 1}, {"AdagradUpdateRows", 1}, {"RmsPropUpdateRows", 1}, {"AdamUpdateRows", 2}}) {
    std::vector<Tensor> inputs(states + 1, counted({4, 3}));
    inputs.insert(inputs.end(), {ints({2, 0, 2}), counted({3, 3}), scalar(0.1f)});
    if (states == 2) inputs.push_back(number(1));
    OperatorCall call = call_of(type.c_str(), inputs, {}, states + 1);
    call.domain = "heddle";
    rows.push_back(
        {type, "indices", call, {ints({1, 1, 1}), ints({-4, 3, -1}), ints({0, 4, 0}), ints({0, 1, -5}), ints({most, least, 0})}});
    call.inputs.push_back(ints({0, 2, 1}));
    rows.push_back({type, "bags", call, {ints({1, 1, 1}), ints({0, 0, 3}), ints({-1, 0, 0}), ints({most, least, 0})}});
  }
  const std::vector<Tensor> contents = {ints({1, 1, 1}), ints({-4, 3, -1}), ints({0, 4, 0}), ints({0, 1, -5}), ints({most, least, 0})};
  for (const bool weighted : {false, true}) {
    OperatorCall call = weighted
                            ? call_of("ScatterWeightedSum", {counted({4, 3}), scalar(0.5f), ints({2, 0, 2}), counted({3, 3}), scalar(2)})
                            : call_of("ScatterAssign", {counted({4, 3}), ints({2, 0, 2}), counted({3, 3})});
    call.domain = "heddle";
    rows.push_back({call.type, "indices", call, contents});
  }
}

// Lookups in a table of four rows.
void add_lookups(std::vector<Row>& rows) {
  const Tensor table = counted({4, 3});
  const std::vector<Tensor> indices = {ints({3, 3, 3}), ints({-1, 0, 0}), ints({0, 0, 4}), ints({most, least, 0})};
  const auto add = [&](const char* type, const char* port, std::vector<Tensor> inputs, const std::vector<Tensor>& others) {
    OperatorCall call = call_of(type, std::move(inputs));
    call.domain = "heddle";
    rows.push_back({type, port, call, others});
  };
  const std::vector<Tensor> lengths = {ints({3, 0}), ints({2, 2}), ints({-1, 4}), ints({most, most}), ints({least, 3})};
  add("EmbeddingBag", "indices", {table, ints({2, 0, 2}), ints({0, 1})}, indices);
  add("EmbeddingBag", "offsets", {table, ints({2, 0, 2}), ints({0, 1})},
      {ints({0, 3}), ints({1, 2}), ints({0, 4}), ints({0, -1}), ints({least, most})});
  for (const char* type : {"SparseLengthsSum", "SparseLengthsMean"}) {
    add(type, "indices", {table, ints({2, 0, 2}), ints({2, 1})}, indices);
    add(type, "lengths", {table, ints({2, 0, 2}), ints({2, 1})}, lengths);
  }
  add("SparseLengthsWeightedSum", "indices", {table, floats({1, 2, 3}), ints({2, 0, 2}), ints({2, 1})}, indices);
  add("SparseLengthsWeightedSum", "lengths", {table, floats({1, 2, 3}), ints({2, 0, 2}), ints({2, 1})}, lengths);
  add("BagRows", "bags", {table, ints({2, 0, 2})}, indices);
  add("BagWeightsGradient", "indices", {table, ints({2, 0, 2}), ints({0, 0, 1}), counted({2, 3})}, indices);
  add("BagWeightsGradient", "bags", {table, ints({2, 0, 2}), ints({0, 0, 1}), counted({2, 3})},
      {ints({1, 1, 1}), ints({0, 2, 0}), ints({0, 0, -1}), ints({most, least, 0})});
}

// Inputs that are read as one number and bound nothing.
void add_scalars(std::vector<Row>& rows) {
  const OperatorCall dropout = call_of("Dropout", {counted({9}), scalar(0.5f), flag(true)}, {{"seed", int64_t{3}}}, 2);
  rows.push_back({"Dropout", "ratio", dropout, {scalar(0), scalar(0.9f), scalar(1), scalar(-1), scalar(nan)}});
  rows.push_back({"Dropout", "training_mode", dropout, {flag(false)}});
  OperatorCall update = call_of("SgdUpdate", {counted({5}), counted({5}), scalar(0.1f)});
  update.domain = "heddle";
  rows.push_back({"SgdUpdate", "lr", update, {scalar(0), scalar(nan), scalar(inf)}});
}

// Inputs with the extents of the tensor that a gradient is for.
void add_window_gradients(std::vector<Row>& rows) {
  const auto add = [&](const char* type, std::vector<Tensor> inputs, std::vector<Attribute> attributes, const std::vector<Tensor>& others) {
    OperatorCall call = call_of(type, std::move(inputs), std::move(attributes));
    call.domain = "heddle";
    rows.push_back({type, "shape", call, others});
  };
  const std::vector<Tensor> of_x = {ints({2, 3, 8}),    ints({2, 3, 6}),  ints({1, 3, 7}),
                                    ints({2, 3, 7000}), ints({2, -3, 7}), ints({2, 3, most})};
  const std::vector<Tensor> of_w = {ints({4, 3, 2}),     ints({4, 3, 1}),  ints({4, 1, 3}),
                                    ints({400, 300, 3}), ints({4, 3, -3}), ints({most, 3, 3})};
  add("ConvDataGradient", {counted({2, 4, 5}), counted({4, 3, 3}), ints({2, 3, 7})}, {}, of_x);
  add("ConvDataGradient", {counted<double>({2, 4, 3}), counted<double>({4, 3, 3}), ints({2, 3, 7})}, {{"strides", std::vector<int64_t>{2}}},
      of_x);
  add("ConvFilterGradient", {counted({2, 3, 7}), counted({2, 4, 5}), ints({4, 3, 3})}, {}, of_w);
  add("ConvFilterGradient", {counted<double>({2, 3, 7}), counted<double>({2, 4, 5}), ints({4, 3, 3})}, {}, of_w);
  add("AveragePoolGradient", {counted({2, 3, 3}), ints({2, 3, 7})},
      {{"kernel_shape", std::vector<int64_t>{3}}, {"strides", std::vector<int64_t>{2}}}, of_x);
}

OperatorCall of_heddle(OperatorCall call) {
  call.domain = "heddle";
  return call;
}

// Operators that gradients consist of.
void add_gradients(std::vector<Row>& rows) {
  rows.push_back({"SumTo",
                  "shape",
                  of_heddle(call_of("SumTo", {counted({2, 3}), ints({2, 1})})),
                  {ints({1, 3}), ints({2, 3}), ints({1, 1}), ints({-2, 1}), ints({most, most}), ints({0, 1})}});
  const OperatorCall slice =
      of_heddle(call_of("ScatterSlice", {counted({5, 7}), counted({3, 3}), ints({1, 1}), ints({4, 6}), ints({0, 1}), ints({1, 2})}));
  rows.push_back({"ScatterSlice", "starts", slice, {ints({3, 5}), ints({-100, 0}), ints({least, most}), ints({2, 1}), ints({9, 9})}});
  rows.push_back({"ScatterSlice", "ends", slice, {ints({2, 2}), ints({most, most}), ints({least, least}), ints({4, 5}), ints({-1, -1})}});
  rows.push_back({"ScatterSlice", "axes", slice, {ints({1, 0}), ints({0, 0}), ints({2, 1}), ints({-3, 1}), ints({-2, -1})}});
  rows.push_back({"ScatterSlice", "steps", slice, {ints({2, 4}), ints({1, 1}), ints({0, 1}), ints({-1, -1}), ints({most, least})}});
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    const OperatorCall pad =
        of_heddle(call_of("PadGradient", {counted({6, 7}), ints({3, 4}), ints({1, 2, 2, 1}), ints({0, 1})}, {{"mode", std::string(mode)}}));
    rows.push_back(
        {"PadGradient", "shape", pad, {ints({4, 3}), ints({3, 3}), ints({300, 400}), ints({-3, 4}), ints({most, 4}), ints({0, 0})}});
    rows.push_back({"PadGradient",
                    "pads",
                    pad,
                    {ints({0, 0, 0, 0}), ints({100, 200, 200, 100}), ints({2, 1, 1, 2}), ints({-9, 0, 0, 0}), ints({most, 2, least, 1}),
                     ints({9, 2, -6, 1}), ints({-3, 2, 6, 1})}});
    rows.push_back({"PadGradient", "axes", pad, {ints({1, 0}), ints({0, 0}), ints({2, 1}), ints({least, 1}), ints({-2, -1})}});
  }
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    const std::vector<Attribute> how = {{"mode", std::string(mode)}};
    const OperatorCall scaled =
        of_heddle(call_of("ResizeGradient", {counted({1, 2, 4, 5}), ints({1, 2, 3, 4}), nullptr, floats({1, 1, 1.5f, 1.25f})}, how));
    rows.push_back({"ResizeGradient",
                    "scales",
                    scaled,
                    {floats({1, 1, 1.4f, 1.3f}), floats({1, 1, 0.5f, 0.5f}), floats({1, 1, 100, 100}), floats({1, 1, -1, 1}),
                     floats({1, 1, nan, inf}), floats({1, 1, 0, 0})}});
    rows.push_back(
        {"ResizeGradient", "shape", scaled, {ints({1, 2, 4, 3}), ints({1, 2, 300, 400}), ints({1, 2, -3, 4}), ints({1, 2, 0, 4})}});
    const OperatorCall sized =
        of_heddle(call_of("ResizeGradient", {counted({1, 2, 4, 5}), ints({1, 2, 3, 4}), nullptr, nullptr, ints({1, 2, 4, 5})}, how));
    rows.push_back(
        {"ResizeGradient", "sizes", sized, {ints({1, 2, 2, 2}), ints({1, 2, 40, 50}), ints({1, 2, -4, 5}), ints({most, 2, 4, 5})}});
  }
  const Tensor grid = tensor<float>({1, 1, 2, 2}, {0, 0, 0.5f, -0.5f});
  rows.push_back({"GridSampleInputGradient",
                  "shape",
                  of_heddle(call_of("GridSampleInputGradient", {counted({1, 1, 1, 2}), ints({1, 1, 3, 4}), grid})),
                  {ints({1, 1, 4, 3}), ints({1, 1, 300, 400}), ints({1, 1, -3, 4}), ints({1, 1, 0, 4}), ints({2, 1, 3, 4})}});
  const Tensor rois = tensor<float>({2, 4}, {0, 0, 3, 3, 1, 1, 4, 4});
  const OperatorCall regions = of_heddle(call_of("RoiAlignGradient", {counted({2, 1, 2, 2}), ints({2, 1, 5, 5}), rois, ints({0, 1})}));
  rows.push_back(
      {"RoiAlignGradient",
       "shape",
       regions,
       {ints({2, 1, 4, 5}), ints({1, 1, 5, 5}), ints({2, 1, 500, 500}), ints({2, 1, -5, 5}), ints({2, 2, 5, 5}), ints({0, 1, 5, 5})}});
  rows.push_back({"RoiAlignGradient", "batch_indices", regions, {ints({0, 0}), ints({0, 2}), ints({-1, 0}), ints({most, least})}});
  rows.push_back({"RoiAlignGradient",
                  "rois",
                  regions,
                  {tensor<float>({2, 4}, {-9, -9, 99, 99, nan, 0, 1, inf}), tensor<float>({2, 4}, {4, 4, 0, 0, 1, 1, 1, 1})}});
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"}) {
      const std::vector<Attribute> how = {{"mode", std::string(mode)}, {"padding_mode", std::string(padding)}};
      const std::vector<Tensor> others = {tensor<float>({1, 1, 2, 2}, {-1, 1, 1, -1}),
                                          tensor<float>({1, 1, 2, 2}, {-99, 99, 1e30f, -1e30f}),
                                          tensor<float>({1, 1, 2, 2}, {nan, inf, -inf, nan})};
      rows.push_back({"GridSampleInputGradient", "grid",
                      of_heddle(call_of("GridSampleInputGradient", {counted({1, 1, 1, 2}), ints({1, 1, 3, 4}), grid}, how)), others});
      rows.push_back({"GridSampleGridGradient", "grid",
                      of_heddle(call_of("GridSampleGridGradient", {counted({1, 1, 1, 2}), counted({1, 1, 3, 4}), grid}, how)), others});
    }
}

}  // namespace

std::vector<OtherContentRow> other_content_rows() {
  std::vector<Row> rows;
  add_views(rows);
  add_ranges(rows);
  add_folds(rows);
  add_pictures(rows);
  add_indices(rows);
  add_updates_by_rows(rows);
  add_lookups(rows);
  add_scalars(rows);
  add_window_gradients(rows);
  add_gradients(rows);
  return rows;
}

}  // namespace heddle::testing
