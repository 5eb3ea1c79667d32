// Conformance: every model of libonnx-testdata's `node` folder, imported and run on its own inputs against its expected outputs (relative
// 1e-3, absolute 1e-7 as in ONNX's backend tests; integers and bools exactly). Three times: operator by operator with all tiles in one
// call, with constant inputs and tiles in random ranges, and as a saved net through a session on two threads.
//
// onnx_node_unsupported.txt lists the models that cannot run, with the reason. The test fails for a model that fails, one that cannot run
// and is not listed, and one that is listed and passes, so the list is true.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>

#include "heddle/session.h"
#include "load/save.h"
#include "onnx/import.h"
#include "onnx/tensors/tensor_proto.h"
#include "operators/pointwise_support.h"

namespace heddle {
namespace {

namespace fs = std::filesystem;
using Blobs = std::vector<std::shared_ptr<const Blob>>;
using Values = std::map<uint32_t, std::shared_ptr<const Blob>>;

const fs::path data_folder = "/usr/share/libonnx-testdata/data/node";

// ---------------------------------------------------------------- running

bool has_subnet(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const Attribute& attribute) { return std::holds_alternative<std::shared_ptr<const Net>>(attribute.value); });
}

enum class Manner { operators, operators_split, session };

Status run_node(const Net& net, const Node& node, Manner manner, Values& values) {
  OperatorCall call;
  call.domain = node.domain;
  call.type = node.type;
  call.version = node.version;
  call.attributes = node.attributes;
  for (ValueId input : node.inputs) call.inputs.push_back(input.valid() ? values[input.index] : nullptr);
  call.output_count = node.outputs.size();
  call.constant_inputs = manner == Manner::operators_split;
  call.split_seed = manner == Manner::operators_split ? 7 : 0;
  auto outputs = run_operator(testing::cpu_registry(), call);
  if (!outputs.ok()) return Status(outputs.status()).at(node.name, node.type).in_net(net.name);
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i].valid()) values[node.outputs[i].index] = (*outputs)[i];
  return {};
}

Result<Blobs> run_net(const Net& net, const Blobs& inputs, Manner manner) {
  Values values;
  for (uint32_t i = 0; i < net.values.size(); ++i)
    if (net.values[i].content.blob) values[i] = net.values[i].content.blob;
  for (size_t i = 0; i < net.inputs.size(); ++i) values[net.inputs[i].index] = i < inputs.size() ? inputs[i] : nullptr;
  for (const Node& node : net.nodes) HEDDLE_CHECK(run_node(net, node, manner, values));
  Blobs outputs;
  for (ValueId output : net.outputs) outputs.push_back(values[output.index]);
  return outputs;
}

Result<Blobs> run_session(const Net& net, const Blobs& inputs) {
  static const Result<Runtime> runtime = [] {
    RuntimeOptions options;
    options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so"};
    options.default_plugins = false;
    options.threads = 2;
    return Runtime::create(options);
  }();
  if (!runtime.ok()) return Status(runtime.status());
  HEDDLE_TRY(auto bytes, net_to_bytes(net), "while saving");
  HEDDLE_TRY(Session session, runtime->open_bytes(bytes.data(), bytes.size(), "."), "while opening");
  std::vector<TensorView> views;
  for (const auto& input : inputs) views.push_back({input->dtype, input->shape, const_cast<std::byte*>(input->data)});
  HEDDLE_TRY(auto results, session.run(views), "while running the session");
  Blobs outputs;
  for (const Tensor& result : results) outputs.push_back(Blob::copy_of(result.dtype(), result.shape(), result.data()));
  return outputs;
}

Result<Blobs> run_in(Manner manner, const Net& net, const Blobs& inputs) {
  // Subnets can not be run one operator at a time.
  if (manner == Manner::session || std::any_of(net.nodes.begin(), net.nodes.end(), has_subnet)) return run_session(net, inputs);
  return run_net(net, inputs, manner);
}

// ---------------------------------------------------------------- comparing

double element(const Blob& blob, int64_t i) {
  const std::byte* at = blob.data + i * byte_width(blob.dtype);
  const auto read = [at](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return static_cast<double>(value);
  };
  switch (blob.dtype) {
    case DType::f32:
      return read(float());
    case DType::f64:
      return read(double());
    case DType::bf16:
    case DType::f16: {
      uint16_t bits = 0;
      std::memcpy(&bits, at, sizeof(bits));
      if (blob.dtype == DType::bf16) {
        const uint32_t wide = static_cast<uint32_t>(bits) << 16;
        float value = 0;
        std::memcpy(&value, &wide, sizeof(value));
        return static_cast<double>(value);
      }
      const int exponent = bits >> 10 & 31, fraction = bits & 1023;
      const double sign = bits >> 15 ? -1 : 1;
      if (exponent == 31) return fraction ? std::nan("") : sign * HUGE_VAL;
      return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
    }
    default:
      return 0;
  }
}

// Returns the difference as text, empty when equal; only dtype and shape are compared when `random`.
std::string difference(const Blob& got, const Blob& expected, bool random) {
  if (got.dtype != expected.dtype) return std::string("dtype ") + to_string(got.dtype) + ", expected " + to_string(expected.dtype);
  if (got.shape != expected.shape) return "shape " + got.shape.text() + ", expected " + expected.shape.text();
  if (random) return {};
  const bool floating = got.dtype == DType::f32 || got.dtype == DType::f64 || got.dtype == DType::f16 || got.dtype == DType::bf16;
  if (!floating) return std::memcmp(got.data, expected.data, static_cast<size_t>(got.bytes)) == 0 ? "" : "other integers";
  // ONNX's generator truncates bfloat16 where Heddle rounds: one unit of the last place.
  const double relative = got.dtype == DType::bf16 ? 1.0 / 128 : 1e-3;
  for (int64_t i = 0; i < got.shape.element_count(); ++i) {
    const double a = element(got, i), b = element(expected, i);
    if ((std::isnan(a) && std::isnan(b)) || a == b || std::fabs(a - b) <= 1e-7 + relative * std::fabs(b)) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(b);
  }
  return {};
}

// ---------------------------------------------------------------- one model

struct Outcome {
  enum Kind { pass, fail, unsupported } kind = pass;
  std::string reason;
};

Outcome failed(const Status& status) {
  const Code code = status.code();
  const bool known = code == Code::unsupported || code == Code::unknown_operator || code == Code::no_kernel;
  return {known ? Outcome::unsupported : Outcome::fail, status.text()};
}

Result<Blobs> read_tensors(const fs::path& folder, const std::string& prefix) {
  Blobs tensors;
  for (int i = 0;; ++i) {
    const fs::path file = folder / (prefix + std::to_string(i) + ".pb");
    if (!fs::exists(file)) return tensors;
    HEDDLE_TRY(NamedTensor tensor, read_tensor_proto(file), file.filename().string());
    tensors.push_back(tensor.blob);
  }
}

// ONNX's test data writes bfloat16 tensors as uint16.
std::shared_ptr<const Blob> as_bf16(const std::shared_ptr<const Blob>& tensor) {
  return tensor->dtype == DType::u16 ? Blob::copy_of(DType::bf16, tensor->shape, tensor->data) : tensor;
}

// Returns true if the net draws random numbers: the expected values are those of another generator.
bool draws_random_numbers(const Net& net) {
  static const std::set<std::string> types = {"Bernoulli",     "RandomNormal",      "RandomNormalLike",
                                              "RandomUniform", "RandomUniformLike", "Multinomial"};
  return std::any_of(net.nodes.begin(), net.nodes.end(),
                     [](const Node& node) { return types.contains(node.type) || (node.type == "Dropout" && node.inputs.size() > 2); });
}

Outcome run_model(const fs::path& folder) {
  Result<Net> net = import_onnx(folder / "model.onnx");
  if (!net.ok()) return failed(net.status());
  const bool random = draws_random_numbers(*net);
  for (int set = 0; fs::exists(folder / ("test_data_set_" + std::to_string(set))); ++set) {
    const fs::path data = folder / ("test_data_set_" + std::to_string(set));
    Result<Blobs> inputs = read_tensors(data, "input_"), expected = read_tensors(data, "output_");
    if (!inputs.ok()) return failed(inputs.status());
    if (!expected.ok()) return failed(expected.status());
    for (size_t i = 0; i < inputs->size() && i < net->inputs.size(); ++i)
      if (net->values[net->inputs[i].index].type.dtype == DType::bf16) (*inputs)[i] = as_bf16((*inputs)[i]);
    for (const Manner manner : {Manner::operators, Manner::operators_split, Manner::session}) {
      const Result<Blobs> outputs = run_in(manner, *net, *inputs);
      if (!outputs.ok()) return failed(outputs.status());
      for (size_t i = 0; i < expected->size(); ++i) {
        if (i >= outputs->size() || !(*outputs)[i]) return {Outcome::fail, "output " + std::to_string(i) + " is missing"};
        const Blob& got = *(*outputs)[i];
        const std::shared_ptr<const Blob> wanted = got.dtype == DType::bf16 ? as_bf16((*expected)[i]) : (*expected)[i];
        const std::string text = difference(got, *wanted, random);
        const char* how = manner == Manner::session ? " through a session: " : ": ";
        if (!text.empty()) return {Outcome::fail, "output " + std::to_string(i) + how + text};
      }
    }
  }
  return {};
}

// ---------------------------------------------------------------- all of them

// Reads the lines "model: reason"; empty lines and those that begin with # are comments.
std::map<std::string, std::string> read_list() {
  std::map<std::string, std::string> list;
  std::ifstream file(HEDDLE_SOURCE_DIR "/tests/operators/onnx_node_unsupported.txt");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    list[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return list;
}

TEST(OnnxNode, EveryModelPassesOrIsListed) {
  if (!fs::exists(data_folder)) GTEST_SKIP() << "libonnx-testdata is not installed";
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(data_folder))
    if (fs::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::map<std::string, std::string> listed = read_list();
  size_t totals[3] = {};
  for (const fs::path& folder : folders) {
    const std::string name = folder.filename().string();
    const Outcome outcome = run_model(folder);
    ++totals[outcome.kind];
    // Data that contradict their own model can not pass anywhere.
    const bool wrong_data = listed.count(name) > 0 && listed[name].rfind("data: ", 0) == 0;
    const bool is_listed = listed.erase(name) > 0;
    if (outcome.kind == Outcome::fail && !wrong_data) ADD_FAILURE() << name << " fails: " << outcome.reason;
    if (outcome.kind == Outcome::unsupported && !is_listed) ADD_FAILURE() << name << " is unsupported and not listed: " << outcome.reason;
    if (outcome.kind == Outcome::pass && is_listed) ADD_FAILURE() << name << " passes: remove it from onnx_node_unsupported.txt";
  }
  for (const auto& [name, reason] : listed) ADD_FAILURE() << name << " is listed but there is no such model";
  std::cout << "onnx node models: " << totals[Outcome::pass] << " pass, " << totals[Outcome::fail] << " fail, "
            << totals[Outcome::unsupported] << " unsupported" << std::endl;
}

}  // namespace
}  // namespace heddle
