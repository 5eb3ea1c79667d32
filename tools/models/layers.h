// Layers as the recipes write them: a few nodes and their parameters each, named like torchvision's modules.
//
// A LayerBuilder wraps one NetBuilder while a recipe runs; not synchronised. Widths follow from the arguments; shapes of values are
// left to inference.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/recipes.h"
#include "net/net.h"

namespace heddle::models {

struct ConvSpec {
  int64_t in = 0;
  int64_t out = 0;
  int64_t kernel_height = 1;
  int64_t kernel_width = 1;
  int64_t stride = 1;
  int64_t pad_height = 0;
  int64_t pad_width = 0;
  int64_t groups = 1;
  static ConvSpec square(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t pad = 0, int64_t groups = 1) {
    return {in, out, kernel, kernel, stride, pad, pad, groups};
  }
};

enum class Pool { max, average };

// One layer of LSTM or GRU cells over [time, batch, in].
struct RecurrentSpec {
  int64_t in = 0;
  int64_t hidden = 0;
  bool bidirectional = false;
  bool last = false;  // whether the last state is wanted too
  float gain = 1;     // for the weights of x
};

struct RecurrentOutputs {
  ValueId all;   // [time, directions, batch, hidden]
  ValueId last;  // [directions, batch, hidden]; invalid if it is not wanted
};

class LayerBuilder {
 public:
  LayerBuilder(std::string name, const RecipeOptions& options) : net_(std::move(name)), seed_(options.seed), batch_(options.batch) {}

  // f32 [batch, channels, size, size]
  ValueId image(int64_t channels, int64_t size);
  // Convolution without bias. Kaiming: variance 2 / fan-in keeps the second moment of ReLU outputs.
  ValueId conv(const std::string& name, ValueId x, const ConvSpec& spec);
  ValueId conv_bias(const std::string& name, ValueId x, const ConvSpec& spec);
  // Statistics around those of a Kaiming convolution's output; `gain` is the mean of the scale.
  ValueId batch_norm(const std::string& name, ValueId x, int64_t channels, float gain = 1, double epsilon = 1e-5);
  ValueId relu(const std::string& name, ValueId x) { return net_.add1("Relu", name, {x}); }
  ValueId pool(const std::string& name, ValueId x, Pool kind, int64_t kernel, int64_t stride, int64_t pad = 0);
  // No operation until the net is trained.
  ValueId dropout(const std::string& name, ValueId x, float ratio);
  // GlobalAveragePool and Flatten: [n, c, h, w] → [n, c]
  ValueId global_pool(const std::string& name, ValueId x);
  // Gemm with the weight as [out, in], torch's way.
  ValueId linear(const std::string& name, ValueId x, int64_t in, int64_t out, float gain = 1);
  // MatMul with the weight as [in, out], and a bias; x of any rank.
  ValueId dense(const std::string& name, ValueId x, int64_t in, int64_t out, float gain = 1);
  // Rows of a table [rows, width]: indices [...] → [..., width]
  ValueId embedding(const std::string& name, ValueId indices, int64_t rows, int64_t width, float deviation = 1);
  // Sums of such rows: indices [n, lookups] → [n, width]
  ValueId bag(const std::string& name, ValueId indices, int64_t rows, int64_t width, float deviation);
  // A transposed convolution 2 x 2 of stride 2 with bias: twice the height and width. The weight is [in, out, 2, 2].
  ValueId upsample(const std::string& name, ValueId x, int64_t in, int64_t out);
  // ONNX's LSTM: weights <name>.W [directions, 4 hidden, in], <name>.R [directions, 4 hidden, hidden] and <name>.B [directions, 8 hidden],
  // gates in the order input, output, forget, cell; it begins with zeros.
  RecurrentOutputs lstm(const std::string& name, ValueId x, const RecurrentSpec& spec);
  // ONNX's GRU with linear_before_reset, which is torch's: weights as of lstm() with 3 gates in the order update, reset, hidden. `initial`
  // [directions, batch, hidden]; none: zeros.
  RecurrentOutputs gru(const std::string& name, ValueId x, const RecurrentSpec& spec, ValueId initial = {});
  // A parameter, uniform with mean 0.
  ValueId parameter(const std::string& name, const Shape& shape, float deviation);
  ValueId parameter_between(const std::string& name, const Shape& shape, float least, float most);

  NetBuilder& net() { return net_; }
  int64_t batch() const { return batch_; }
  // The net with this output, renamed, and, where it is valid, another called "auxiliary_<name>".
  Net finish(ValueId output, const std::string& name, ValueId auxiliary = {});

 private:
  ValueId conv_node(const std::string& name, std::vector<ValueId> inputs, const ConvSpec& spec);
  // x, W, R, B: the inputs that the recurrent operators share.
  std::vector<ValueId> recurrent_inputs(const std::string& name, ValueId x, const RecurrentSpec& spec, int64_t gates);
  RecurrentOutputs recurrent_node(const std::string& type, const std::string& name, std::vector<ValueId> inputs, const RecurrentSpec& spec,
                                  std::vector<Attribute> attributes);

  NetBuilder net_;
  uint64_t seed_;
  int64_t batch_;
};

}  // namespace heddle::models
