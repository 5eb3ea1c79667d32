// RNN, GRU and LSTM on the CUDA device, by the stand-in's cuBLASLt and the emulated grid: the host's results, whatever their attributes.
#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "conformance/judge.h"
#include "device_program.h"

namespace heddle::cuda {
namespace {

using namespace testing_standin;

// A layer of [time, batch, width], and its inputs other than X, W and R.
struct Layer {
  std::string type = "LSTM";
  std::string direction = "forward";
  DType dtype = DType::f32;
  int64_t times = 4, batches = 3, inputs = 5, hidden = 6, layout = 0;
  bool bias = false, states = false, peepholes = false;
  std::vector<int32_t> lengths = {};  // empty: no sequence_lens
  bool lengths_are_bound = false;
  std::vector<bool> outputs = {true, true, true};
  bool keeps_sums = false;
  std::vector<Attribute> attributes = {};

  bool is_lstm() const { return type == "LSTM"; }
  int64_t gates() const { return type == "RNN" ? 1 : type == "GRU" ? 3 : 4; }
  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }
  std::string text() const {
    std::ostringstream out;
    out << type << " " << direction << " " << to_string(dtype) << " [" << times << ", " << batches << ", " << inputs << "] to " << hidden
        << " layout " << layout << (bias ? " bias" : "") << (states ? " states" : "") << (peepholes ? " peepholes" : "")
        << (lengths.empty() ? "" : " lengths");
    for (const Attribute& a : attributes) out << " " << a.name;
    return out.str();
  }
};

// Returns numbers uniform in [-scale, scale].
std::shared_ptr<const Blob> uniform(DType dtype, const Shape& shape, uint64_t seed, double scale = 1) {
  std::mt19937_64 dice(seed);
  conformance::Numbers numbers = conformance::zeros(dtype, shape);
  for (conformance::Number& n : numbers.values) n = scale * (static_cast<double>(dice() >> 11) * 0x1p-52 - 1);
  return conformance::blob_of(numbers);
}

Net net_of(const Layer& l) {
  NetBuilder b("layer");
  const int64_t d = l.directions(), rows = l.gates() * l.hidden;
  const Shape state = l.layout ? Shape{l.batches, d, l.hidden} : Shape{d, l.batches, l.hidden};
  std::vector<ValueId> in(l.is_lstm() ? 8 : 6);
  in[0] = b.input("x", l.dtype, l.layout ? Shape{l.batches, l.times, l.inputs} : Shape{l.times, l.batches, l.inputs});
  in[1] = b.constant("w", uniform(l.dtype, Shape{d, rows, l.inputs}, 21));
  in[2] = b.input("r", l.dtype, Shape{d, rows, l.hidden});
  if (l.bias) in[3] = b.constant("b", uniform(l.dtype, Shape{d, 2 * rows}, 23));
  if (!l.lengths.empty() && l.lengths_are_bound) in[4] = b.input("lengths", DType::i32, Shape{l.batches});
  if (!l.lengths.empty() && !l.lengths_are_bound)
    in[4] = b.constant("lengths", Blob::copy_of(DType::i32, Shape{l.batches}, l.lengths.data()));
  if (l.states) in[5] = b.input("h", l.dtype, state);
  if (l.states && l.is_lstm()) in[6] = b.input("c", l.dtype, state);
  if (l.peepholes) in[7] = b.constant("p", uniform(l.dtype, Shape{d, 3 * l.hidden}, 27));
  std::vector<Attribute> attributes = l.attributes;
  attributes.push_back({"direction", l.direction});
  attributes.push_back({"layout", l.layout});
  const size_t states = l.is_lstm() ? 3 : 2;
  const std::vector<ValueId> out = b.add(l.type, "layer", in, states + l.keeps_sums, attributes);
  for (size_t i = 0; i < out.size(); ++i)
    if (i >= states || l.outputs[i]) b.output(out[i]);
  return b.finish();
}

class CudaRecurrent : public StandinTest {
 protected:
  using Blobs = std::vector<std::shared_ptr<const Blob>>;

  // Returns the range of weights such that large sums of states stay where functions are steep.
  static double scale_of(const Layer& layer, const std::string& port) {
    return port == "r" ? 4 / static_cast<double>(std::max<int64_t>(layer.hidden, 4)) : 1;
  }
  // Binds numbers and runs; the outputs go to `outputs`.
  static void run(const Layer& layer, Prepared& prepared, Blobs* outputs) {
    const std::vector<PortInfo> ports = prepared.session.inputs();
    prepared.inputs.clear();
    for (const PortInfo& port : ports)
      prepared.inputs.push_back(port.dtype == DType::i32
                                    ? Blob::copy_of(DType::i32, port.shape, layer.lengths.data())
                                    : uniform(port.dtype, port.shape, prepared.inputs.size() + 1, scale_of(layer, port.name)));
    for (size_t i = 0; i < prepared.inputs.size(); ++i) ASSERT_TRUE(prepared.context.bind_input(i, prepared.inputs[i]->data).ok());
    const Status status = prepared.context.run();
    ASSERT_TRUE(status.ok()) << status.text();
    for (size_t i = 0; i < prepared.context.output_count(); ++i) {
      const TensorView y = prepared.context.output(i);
      outputs->push_back(Blob::copy_of(y.dtype, y.shape, y.data));
    }
  }

  // Runs on the device alone; `calls` receives those of a second run.
  Blobs on_device(const Layer& layer, std::vector<std::string>* calls = nullptr) {
    Blobs outputs;
    auto made = testing_standin::prepare(cuda_runtime(), net_of(layer), on_cuda());
    EXPECT_TRUE(made.ok()) << made.status().text();
    if (!made.ok()) return outputs;
    run(layer, *made, &outputs);
    for (const PlanStep& step : made->plan().steps) EXPECT_TRUE(step.on_device || step.type == "Fence") << step.type;
    if (calls) {
      cuda.log(1);
      EXPECT_TRUE(made->context.run().ok());
      std::istringstream in(cuda.logged());
      cuda.log(0);
      for (std::string call; std::getline(in, call, ',');) calls->push_back(call);
    }
    return outputs;
  }

  // Compares relative to the largest magnitude of states, or larger: products of these numbers are added in another order.
  void compare(const Layer& layer, std::vector<std::string>* calls = nullptr) {
    SCOPED_TRACE(layer.text());
    auto host = testing_standin::prepare(cuda_runtime(), net_of(layer), {});
    ASSERT_TRUE(host.ok()) << host.status().text();
    Blobs expected;
    ASSERT_NO_FATAL_FAILURE(run(layer, *host, &expected));
    const Blobs got = on_device(layer, calls);
    ASSERT_EQ(got.size(), expected.size());
    const double most = layer.dtype == DType::f64 ? 1e-13 : 1e-5;
    for (size_t i = 0; i < got.size(); ++i) {
      const conformance::Numbers a = conformance::numbers_of(*got[i]), b = conformance::numbers_of(*expected[i]);
      ASSERT_EQ(a.shape, b.shape);
      size_t wrong = 0;
      for (size_t k = 0; k < a.values.size(); ++k) wrong += !(std::fabs(a.values[k] - b.values[k]) <= most * (1 + std::fabs(b.values[k])));
      EXPECT_EQ(wrong, 0u) << "of " << a.values.size() << " of output " << i;
    }
    EXPECT_EQ(broken(), "");
  }
};

const char* const types[] = {"RNN", "GRU", "LSTM"};
const char* const all_directions[] = {"forward", "reverse", "bidirectional"};

TEST_F(CudaRecurrent, EveryDirectionAndLayout) {
  for (const char* type : types)
    for (const char* direction : all_directions)
      for (const int64_t layout : {0, 1})
        for (const bool full : {false, true}) {
          Layer l{type, direction};
          l.layout = layout;
          l.bias = l.states = full;
          l.peepholes = full && l.is_lstm();
          if (full) l.lengths = {4, 0, 2};
          compare(l);
        }
}

TEST_F(CudaRecurrent, DoublesAreComputedInDoubles) {
  for (const char* type : types)
    for (const char* direction : all_directions) {
      Layer l{type, direction, DType::f64};
      l.bias = l.states = true;
      l.lengths = {1, 4, 3};
      compare(l);
    }
}

TEST_F(CudaRecurrent, VariantsAndClip) {
  for (const char* direction : all_directions)
    for (const int64_t layout : {0, 1})
      for (const double clip : {0.0, 0.5}) {
        for (const int64_t variant : {0, 1}) {
          Layer gru{"GRU", direction}, lstm{"LSTM", direction};
          gru.layout = lstm.layout = layout;
          gru.bias = gru.states = lstm.bias = lstm.states = lstm.peepholes = true;
          gru.attributes = {{"linear_before_reset", variant}};
          lstm.attributes = {{"input_forget", variant}};
          for (Layer* l : {&gru, &lstm})
            if (clip > 0) l->attributes.push_back({"clip", clip});
          compare(gru);
          compare(lstm);
        }
        Layer rnn{"RNN", direction};
        rnn.layout = layout;
        if (clip > 0) rnn.attributes = {{"clip", clip}};
        compare(rnn);
      }
}

// Each function in each place, with its own parameters, and another one for the reverse direction.
TEST_F(CudaRecurrent, EveryActivation) {
  const std::vector<std::string> names = {"Relu",       "Tanh",        "Sigmoid", "Affine",   "LeakyRelu", "ThresholdedRelu",
                                          "ScaledTanh", "HardSigmoid", "Elu",     "Softsign", "Softplus"};
  for (const char* type : types)
    for (size_t i = 0; i < names.size(); ++i) {
      Layer l{type, "bidirectional"};
      l.bias = true;
      const size_t places = l.type == "RNN" ? 1 : l.type == "GRU" ? 2 : 3;
      std::vector<std::string> functions;
      for (size_t k = 0; k < 2 * places; ++k) functions.push_back(names[(i + k) % names.size()]);
      l.attributes = {{"activations", functions},
                      {"activation_alpha", std::vector<double>{0.25, 0.5, 0.75}},
                      {"activation_beta", std::vector<double>{0.5, 0.25}}};
      compare(l);
    }
}

TEST_F(CudaRecurrent, ExtentsOfZeroAndOne) {
  for (const char* type : types)
    for (const char* direction : {"forward", "bidirectional"})
      for (const auto& [times, batches, inputs, hidden] :
           {std::array<int64_t, 4>{0, 2, 3, 4}, {3, 0, 3, 4}, {3, 2, 0, 4}, {3, 2, 3, 0}, {1, 1, 1, 1}, {2, 1, 130, 67}}) {
        Layer l{type, direction};
        l.times = times;
        l.batches = batches;
        l.inputs = inputs;
        l.hidden = hidden;
        l.states = l.bias = true;
        compare(l);
      }
}

TEST_F(CudaRecurrent, OutputsThatNobodyWants) {
  for (const char* type : types)
    for (const std::vector<bool>& outputs : {std::vector<bool>{true, false, false}, {false, true, false}, {false, false, true}}) {
      Layer l{type};
      l.outputs = outputs;
      if (outputs[2] && !l.is_lstm()) continue;
      compare(l);
    }
}

TEST_F(CudaRecurrent, SumsForAGradient) {
  for (const char* type : types)
    for (const char* direction : all_directions)
      for (const int64_t layout : {0, 1}) {
        Layer l{type, direction};
        l.layout = layout;
        l.bias = l.states = true;
        l.peepholes = l.is_lstm();
        l.lengths = {2, 4, 0};
        l.keeps_sums = true;
        compare(l);
        if (l.type == "RNN") continue;
        l.attributes = {{l.is_lstm() ? "input_forget" : "linear_before_reset", int64_t{1}}};
        l.outputs = {false, false, false};
        compare(l);
      }
}

TEST_F(CudaRecurrent, LengthsOfEachRun) {
  for (const char* type : types)
    for (const char* direction : all_directions) {
      Layer l{type, direction};
      l.lengths = {2, 4, 1};
      l.lengths_are_bound = true;
      compare(l);
    }
}

// More batch entries than there are blocks at once.
TEST_F(CudaRecurrent, ManyBatchEntries) {
  for (const char* type : types) {
    Layer l{type, "bidirectional"};
    l.times = 2;
    l.batches = 150;
    l.hidden = 3;
    l.bias = l.states = true;
    compare(l);
  }
}

// R is larger than what a block reads in each step.
constexpr int64_t large = 520;

TEST_F(CudaRecurrent, LargeWeightsAreMultipliedInEachStep) {
  for (const char* type : types)
    for (const char* direction : all_directions)
      for (const int64_t variant : {0, 1}) {
        Layer l{type, direction};
        l.times = 3;
        l.hidden = large;
        l.layout = variant;
        l.bias = l.states = true;
        l.peepholes = l.is_lstm();
        l.lengths = {3, 1, 2};
        if (l.type == "GRU") l.attributes = {{"linear_before_reset", variant}};
        compare(l);
      }
}

// One product for all of X and one launch for all steps; if R is large, in each step one product and one launch, two of each if GRU resets
// before. And nothing else.
TEST_F(CudaRecurrent, CallsOfARun) {
  for (const char* direction : all_directions)
    for (const char* type : types)
      for (const auto& [variant, hidden] : {std::array<int64_t, 2>{0, 6}, {1, 6}, {0, large}, {1, large}}) {
        Layer l{type, direction};
        l.times = 7;
        l.hidden = hidden;
        if (l.type == "GRU") l.attributes = {{"linear_before_reset", variant}};
        const int64_t each = hidden < large ? 0 : l.type == "GRU" && variant == 0 ? 2 : 1;
        std::vector<std::string> calls;
        compare(l, &calls);
        EXPECT_EQ(std::count(calls.begin(), calls.end(), "cublasLtMatmul"), 1 + 7 * each);
        EXPECT_EQ(std::count(calls.begin(), calls.end(), "cudaLaunchKernelExC"), 1 + 7 * each);
        for (const std::string& call : calls)
          EXPECT_TRUE(call.find("Malloc") == std::string::npos && call.find("DeviceSynchronize") == std::string::npos) << call;
      }
}

TEST_F(CudaRecurrent, NothingIsLeftBehind) {
  for (const char* type : types) compare(Layer{type, "bidirectional"});
  cuda.look_for_leaks();
  EXPECT_EQ(broken(), "");
}

}  // namespace
}  // namespace heddle::cuda
