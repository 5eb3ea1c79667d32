#include "operator_examination.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "base/text.h"
#include "inputs.h"
#include "plugin/operator_runner.h"
#include "tensor_files.h"

namespace heddle::tool {
namespace {

using Blobs = std::vector<std::shared_ptr<const Blob>>;

const Shape shapes[] = {Shape{}, Shape{1}, Shape{7}, Shape{2, 3}, Shape{0, 3}, Shape{3, 1, 5}, Shape{2, 3, 5, 4}, Shape{300, 257}};

OperatorCall call_of(const OperatorSchema& schema) {
  OperatorCall call;
  call.domain = schema.domain;
  call.type = schema.name;
  call.version = schema.version;
  call.output_count = 0;
  for (uint32_t i = 0; i < schema.op->output_count && !(schema.op->outputs[i]->flags & HEDDLE_PORT_OPTIONAL); ++i) ++call.output_count;
  return call;
}

bool same_bits(const Blobs& a, const Blobs& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i]->shape != b[i]->shape || std::memcmp(a[i]->data, b[i]->data, static_cast<size_t>(a[i]->bytes)) != 0) return false;
  return a.size() == b.size();
}

// An optional input that was not given: absent in the fragment too.
bool is_absent_input(const OperatorSchema& schema, const OperatorCall& call, const std::string& role) {
  for (uint32_t i = static_cast<uint32_t>(call.inputs.size()); i < schema.op->input_count; ++i)
    if (role == schema.op->inputs[i]->name || role == "x" + std::to_string(i)) return true;
  return false;
}

// The gradient of sum(y0 * dy) for input 0 by the operators that the schema emits; null when it emits none that generic inputs fit.
std::shared_ptr<const Blob> emitted_gradient(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call,
                                             const Blobs& outputs, const std::shared_ptr<const Blob>& dy, std::string& wrong) {
  std::map<std::string, std::shared_ptr<const Blob>> values;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    values["x" + std::to_string(i)] = call.inputs[i];
    if (i < schema.op->input_count) values[schema.op->inputs[i]->name] = call.inputs[i];
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    values["y" + std::to_string(i)] = outputs[i];
    values[schema.op->outputs[i]->name] = outputs[i];
  }
  values["dy0"] = dy;
  values[std::string("d") + schema.op->outputs[0]->name] = dy;
  for (uint32_t n = 0; n < schema.op->gradient_node_count; ++n) {
    const heddle_gradient_node& node = *schema.op->gradient_nodes[n];
    OperatorCall emitted;
    emitted.domain = node.domain;
    emitted.type = node.operator_name;
    emitted.output_count = node.output_count;
    const OperatorSchema* target = registry.find_operator(emitted.domain, emitted.type);
    if (!target) {
      wrong = "its gradient emits " + display_name(node.domain, node.operator_name) + ", which no loaded plugin has";
      return nullptr;
    }
    for (const Attribute& a : call.attributes)
      if (target->attribute_index(a.name) >= 0) emitted.attributes.push_back(a);
    for (uint32_t i = 0; i < node.input_count; ++i) {
      const auto it = values.find(node.inputs[i]);
      if (it == values.end() && is_absent_input(schema, call, node.inputs[i])) {
        emitted.inputs.push_back(nullptr);
        continue;
      }
      if (it == values.end()) {
        wrong = "its gradient reads " + quoted(node.inputs[i]) + ", which is no value of the fragment";
        return nullptr;
      }
      emitted.inputs.push_back(it->second);
    }
    auto result = run_operator(registry, emitted);
    if (!result.ok()) {
      wrong = "its gradient: " + result.status().text();
      return nullptr;
    }
    for (uint32_t i = 0; i < node.output_count && i < result->size(); ++i) values[node.outputs[i]] = (*result)[i];
  }
  for (const std::string& name : {std::string("dx0"), std::string("d") + schema.op->inputs[0]->name})
    if (const auto it = values.find(name); it != values.end()) return it->second;
  return nullptr;
}

double weighted_sum(const Blob& y, const Blob& dy) {
  double total = 0;
  for (int64_t i = 0; i < y.shape.element_count(); ++i)
    total +=
        static_cast<double>(reinterpret_cast<const float*>(y.data)[i]) * static_cast<double>(reinterpret_cast<const float*>(dy.data)[i]);
  return total;
}

std::string check_gradient(const RegistrySnapshot& registry, const OperatorSchema& schema, OperatorCall call, const Blobs& outputs,
                           uint64_t seed) {
  if (schema.op->gradient_node_count == 0 || call.inputs.empty() || outputs[0]->dtype != DType::f32) return {};
  const auto dy = random_blob(DType::f32, outputs[0]->shape, seed + 99);
  std::string wrong;
  const auto gradient = emitted_gradient(registry, schema, call, outputs, dy, wrong);
  if (!gradient) return wrong;
  const std::shared_ptr<const Blob> x = call.inputs[0];
  if (gradient->shape != x->shape) return "its gradient has shape " + gradient->shape.text() + ", the input " + x->shape.text();
  for (int64_t i = 0; i < std::min<int64_t>(x->shape.element_count(), 16); ++i) {
    constexpr float h = 1e-2f;
    double sums[2];
    for (const int side : {0, 1}) {
      std::byte* data = nullptr;
      auto moved = Blob::allocate(DType::f32, x->shape, &data);
      std::memcpy(data, x->data, static_cast<size_t>(x->bytes));
      reinterpret_cast<float*>(data)[i] += side ? h : -h;
      call.inputs[0] = moved;
      auto result = run_operator(registry, call);
      if (!result.ok()) return {};
      sums[side] = weighted_sum(*(*result)[0], *dy);
    }
    const double numeric = (sums[1] - sums[0]) / (2 * static_cast<double>(h));
    const double emitted = static_cast<double>(reinterpret_cast<const float*>(gradient->data)[i]);
    // Kinks (relu at 0) give half of either side: both ends of the step must disagree with the emitted value to be an error.
    if (std::abs(numeric - emitted) > 2e-2 * std::max(1.0, std::abs(numeric)) &&
        std::abs(reinterpret_cast<const float*>(x->data)[i]) > 2 * h)
      return "element " + std::to_string(i) + " of its gradient is " + shortest(emitted) + ", central differences say " + shortest(numeric);
  }
  return {};
}

std::string examine_with(const RegistrySnapshot& registry, const OperatorSchema& schema, const Shape& shape, DType dtype, uint64_t seed,
                         bool* fitted) {
  OperatorCall call = call_of(schema);
  if (call.output_count == 0) return {};
  uint32_t inputs = 0;
  for (uint32_t i = 0; i < schema.op->input_count; ++i)
    if (!(schema.op->inputs[i]->flags & HEDDLE_PORT_OPTIONAL)) inputs = i + 1;
  for (uint32_t i = 0; i < inputs; ++i) call.inputs.push_back(random_blob(dtype, shape, seed + i));
  call.random_seed = seed;
  const auto first = run_operator(registry, call);
  if (!first.ok()) {
    // Refusing generic inputs is an operator's right; failing behind a successful inference is not.
    const Code code = first.status().code();
    const std::string text = first.status().text();
    if (code == Code::kernel_failed && text.find("exception across") != std::string::npos) return text;
    return {};
  }
  *fitted = true;
  const std::string where = std::string(" (") + to_string(dtype) + shape.text() + ", seed " + std::to_string(seed) + ")";
  for (const uint64_t split : {uint64_t{3}, uint64_t{4}}) {
    OperatorCall again = call;
    again.split_seed = split;
    const auto other = run_operator(registry, again);
    if (!other.ok()) return "fails when its tiles are split: " + other.status().text() + where;
    if (!same_bits(*first, *other)) return "gives other bits when its tiles are split" + where;
  }
  OperatorCall constant = call;
  constant.constant_inputs = true;
  const auto other = run_operator(registry, constant);
  if (!other.ok()) return "fails with constant inputs: " + other.status().text() + where;
  if (!same_bits(*first, *other)) return "gives other bits with constant inputs" + where;
  if (dtype == DType::f32 && shape.element_count() > 0 && shape.element_count() < 1000) {
    const std::string wrong = check_gradient(registry, schema, call, *first, seed);
    if (!wrong.empty()) return wrong + where;
  }
  return {};
}

}  // namespace

std::string examine_operator(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed) {
  bool fitted = false;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64, DType::u8, DType::boolean})
    for (const Shape& shape : shapes) {
      const std::string wrong = examine_with(registry, schema, shape, dtype, seed, &fitted);
      if (!wrong.empty()) return wrong;
    }
  return fitted ? "" : "note: no generic inputs fit this operator; test it with heddle plugin run";
}

}  // namespace heddle::tool
