#include "fuzz/material.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "load/sample_net.h"
#include "load/save.h"
#include "onnx/import.h"
#include "onnx/tensors/tensor_proto.h"
#include "small_nets.h"

namespace heddle::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t largest_seed = 16 << 10;

bool is_integer_or_bool(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32 || dtype == DType::boolean;
}

// Turns the inputs that `chosen` selects into constants with the contents of the model's test data.
template <class Chosen>
Net with_constants(Net net, const fs::path& folder, Chosen chosen) {
  const std::vector<ValueId> inputs = net.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto tensor = read_tensor_proto(folder / ("test_data_set_0/input_" + std::to_string(i) + ".pb"));
    Value& value = net[inputs[i]];
    if (!tensor.ok() || !chosen(tensor->blob->dtype)) continue;
    value.kind = Value::Kind::constant;
    value.type = DeclaredType::of(tensor->blob->dtype, tensor->blob->shape);
    value.content.blob = tensor->blob;
    std::erase(net.inputs, inputs[i]);
  }
  return net;
}

void add_models(const fs::path& folder, std::vector<Net>& seeds) {
  const auto add = [&](Net net) {
    const auto bytes = net_to_bytes(net);
    if (bytes.ok() && bytes->size() <= largest_seed) seeds.push_back(std::move(net));
  };
  std::vector<fs::path> models;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) models.push_back(entry.path());
  std::sort(models.begin(), models.end());
  for (const fs::path& model : models) {
    const auto net = import_onnx(model / "model.onnx");
    if (!net.ok()) continue;
    add(*net);
    Net integers = with_constants(*net, model, is_integer_or_bool);
    const bool all = integers.inputs.empty();
    if (integers.inputs.size() < net->inputs.size()) add(std::move(integers));
    if (!all && !net->inputs.empty()) add(with_constants(*net, model, [](DType) { return true; }));
  }
}

// x -> MatMul -> Softmax, and a counter that each run increments.
Net counting_net() {
  using namespace testing_nets;
  NetBuilder b("counting");
  const ValueId x = b.input("x", DeclaredType{DType::f32, true, {Dim::named("N"), Dim::of(4)}});
  const ValueId y = b.add1("MatMul", "product", {x, b.constant("w", blob(Shape{4, 4}, -1, 0.25f))});
  b.output(b.add1("Softmax", "softmax", {y}));
  const float zero = 0;
  const ValueId runs = b.variable("runs", Blob::copy_of(DType::f32, Shape{}, &zero));
  const ValueId next = b.add1("Add", "next", {runs, b.constant_float("one", 1)});
  b.updates(next, runs);
  b.output(next);
  return b.finish();
}

}  // namespace

std::shared_ptr<const RegistrySnapshot> cpu_registry() {
  static Registry& registry = *new Registry();  // plugins stay loaded until the process ends
  const Status loaded = registry.load(HEDDLE_BINARY_DIR "/lib/cpu.so");
  if (!loaded.ok()) {
    std::fprintf(stderr, "%s\n", loaded.text().c_str());
    std::exit(2);
  }
  return registry.snapshot();
}

Material make_material(const RegistrySnapshot& registry) {
  Material material;
  for (const auto& plugin : registry.plugins())
    for (const OperatorSchema& schema : plugin->operators) material.operators.push_back(&schema);
  material.seeds = {testing::sample_net(), testing_nets::convolution_net(), counting_net()};
  const fs::path data = "/usr/share/libonnx-testdata/data";
  for (const char* folder : {"node", "simple", "pytorch-operator", "pytorch-converted"}) add_models(data / folder, material.seeds);
  return material;
}

}  // namespace heddle::fuzz
