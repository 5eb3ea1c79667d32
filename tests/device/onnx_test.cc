// ONNX's node, simple and PyTorch models, each entirely on one device, without a copy that the net does not name: they give the bits of the
// serial run on the host, or are refused with the operators' names. onnx_refused.txt lists those that are refused and run on the host; the
// test checks that list.
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>

#include "device_support.h"
#include "onnx/import.h"
#include "onnx/tensors/tensor_proto.h"

namespace heddle {
namespace {

using namespace testing_devices;
namespace fs = std::filesystem;
using Blobs = std::vector<std::shared_ptr<const Blob>>;

HEDDLE_DEVICE_SUITE(DeviceOnnx);

const fs::path data = "/usr/share/libonnx-testdata/data";

Result<Blobs> feeds_of(const fs::path& set) {
  Blobs feeds;
  for (size_t i = 0; fs::exists(set / ("input_" + std::to_string(i) + ".pb")); ++i) {
    HEDDLE_TRY(const NamedTensor tensor, read_tensor_proto(set / ("input_" + std::to_string(i) + ".pb")));
    feeds.push_back(tensor.blob);
  }
  return feeds;
}

using NetResults = std::vector<std::pair<Shape, std::vector<char>>>;

Result<NetResults> run(const Runtime& runtime, const Net& net, const SessionOptions& options, const Blobs& feeds) {
  HEDDLE_TRY(Session session, runtime.open(Net(net), options));
  std::vector<TensorView> views;
  for (const auto& feed : feeds) views.push_back(view(*feed));
  HEDDLE_TRY(const std::vector<Tensor> outputs, session.run(views));
  NetResults results;
  for (const Tensor& output : outputs) results.emplace_back(output.shape(), bytes(output.view()));
  return results;
}

// Lines "model: operators"; those that begin with # are comments.
std::map<std::string, std::string> refused_models() {
  std::map<std::string, std::string> list;
  std::ifstream file(HEDDLE_SOURCE_DIR "/tests/device/onnx_refused.txt");
  for (std::string line; std::getline(file, line);)
    if (const size_t colon = line.find(": "); line[0] != '#' && colon != std::string::npos)
      list[line.substr(0, colon)] = line.substr(colon + 2);
  return list;
}

struct Model {
  std::string name;
  Net net;
  Blobs feeds;
  NetResults right;
};

// Returns the models that run on the host.
std::vector<Model> models() {
  std::vector<Model> all;
  const Runtime host = device_runtime();
  for (const char* folder : {"node", "simple", "pytorch-converted", "pytorch-operator"})
    for (const auto& entry : fs::directory_iterator(data / folder)) {
      Result<Net> net = import_onnx(entry.path() / "model.onnx");
      Result<Blobs> feeds = feeds_of(entry.path() / "test_data_set_0");
      if (!net.ok() || !feeds.ok()) continue;
      Result<NetResults> right = run(host, *net, SessionOptions(), *feeds);
      if (right.ok()) all.push_back({entry.path().filename().string(), std::move(*net), std::move(*feeds), std::move(*right)});
    }
  return all;
}

TEST_P(DeviceOnnx, ModelsRunWholeWithTheHostsBitsOrAreListed) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  if (!fs::exists(data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  SessionOptions options = silent(2);
  options.device = device_name(0);
  options.copies = Copies::strict;
  const std::vector<Model> all = models();
  for (int seed = 0; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const DeviceSetting delays("SEED", std::to_string(seed));
    const Runtime runtime = device_runtime(2);
    std::map<std::string, std::string> listed = refused_models();
    size_t refused = 0;
    for (const Model& model : all) {
      const Result<NetResults> there = run(runtime, model.net, options, model.feeds);
      if (there.ok()) {
        EXPECT_EQ(*there, model.right) << model.name;
        continue;
      }
      ++refused;
      const std::string text = there.status().text();
      EXPECT_TRUE(listed.contains(model.name) && text.find(listed[model.name]) != std::string::npos) << model.name << ": " << text;
      listed.erase(model.name);
    }
    for (const auto& [name, operators] : listed) ADD_FAILURE() << name << " is not refused: remove it from onnx_refused.txt";
    if (seed == 0) std::cout << all.size() - refused << " models run whole on " << device_name(0) << ", " << refused << " are refused\n";
    EXPECT_LE(20 * refused, all.size());
  }
}

bool agrees_upon_a_layout(const Node& node) {
  return node.type == "Transpose" || node.type == "Softmax" || node.type == "LogSoftmax" || node.type == "Log";
}

// Every operator is on the host or on one of two devices, as the seed decides; the necessary copies are inserted.
TEST_P(DeviceOnnx, ModelsSpreadAtRandomGiveTheHostsBits) {
  HEDDLE_DEVICE_NEEDS(runs_host_kernels);
  if (!fs::exists(data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  std::vector<Model> all = models();
  for (int seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const DeviceSetting delays("SEED", std::to_string(seed));
    const Runtime runtime = device_runtime(2);
    std::mt19937 random(static_cast<uint32_t>(seed));
    for (Model& model : all) {
      for (Node& node : model.net.nodes) {
        const auto place = random() % 3;
        node.device = place == 2 || node.has_subnet() ? "cpu:0" : device_name(static_cast<int>(place));
        // The rounding of softmax depends on the layout that these operators agree upon.
        const NodeId before = node.inputs.empty() || !node.inputs[0].valid() ? NodeId() : model.net[node.inputs[0]].producer;
        if (before.valid() && agrees_upon_a_layout(node) && agrees_upon_a_layout(model.net[before])) node.device = model.net[before].device;
      }
      const Result<NetResults> there = run(runtime, model.net, silent(2), model.feeds);
      EXPECT_TRUE(there.ok()) << model.name << ": " << there.status().text();
      EXPECT_TRUE(!there.ok() || *there == model.right) << model.name;
    }
  }
}

}  // namespace
}  // namespace heddle
