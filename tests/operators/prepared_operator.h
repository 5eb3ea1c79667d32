// One operator whose kernel is made and prepared alone, with or without memory, and run under a host that cancels it.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operators/no_services.h"
#include "plugin/infer_operator.h"
#include "plugin/kernel_instance.h"
#include "plugin/operator_cost.h"

namespace heddle::testing {

using Ints = std::vector<int64_t>;

struct Input {
  DType dtype = DType::none;  // none: absent
  Shape shape;
  Ints content;  // of integers that decide shapes, and of those that a run reads; else zeros
  bool known = false;
};
inline Input f32(Shape shape) {
  return {DType::f32, shape, {}, false};
}
inline Input of(DType dtype, Shape shape) {
  return {dtype, shape, {}, false};
}
inline Input ints(Ints content) {
  return {DType::i64, Shape{static_cast<int64_t>(content.size())}, content, true};
}
inline Input scalar(int64_t content) {
  return {DType::i64, Shape{}, {content}, true};
}

struct Case {
  std::string type;
  std::vector<Input> inputs;
  std::vector<Attribute> attributes = {};
  size_t outputs = 1;
  std::string domain = "";
  std::string name() const { return display_name(domain, type) + " of " + (inputs.empty() ? "" : inputs[0].shape.text()); }
};

// An operator as one node, its kernel made and prepared; the case must outlive it. With `memory` it has inputs of zeros, and outputs.
class Prepared {
 public:
  Prepared(const std::shared_ptr<const RegistrySnapshot>& registry, const Case& c, bool memory) {
    net_.registry = registry, status_ = make(c, memory);
  }
  const Status& status() const { return status_; }
  int64_t tiles() const { return made_.tiles; }
  bool lowered() const { return lowered_; }  // no kernel: it runs as heddle::Pointwise
  Result<OperatorCost> cost() const { return operator_cost(net_, node_, table_); }
  int64_t input_bytes() const { return bytes_of(inputs_); }
  int64_t output_bytes() const { return bytes_of(outputs_); }
  // The error of the last kernel that failed.
  static std::string& said() {
    static std::string text;
    return text;
  }
  // Run all tiles at once; run_called_off() under a host that reports every run as over.
  heddle_status run() { return run(false); }
  heddle_status run_called_off() { return run(true); }

 private:
  heddle_status run(bool called_off);
  Status make(const Case& c, bool memory);
  template <class Views>
  static int64_t bytes_of(const Views& views) {
    int64_t bytes = 0;
    for (const auto* view : views) bytes += view ? static_cast<int64_t>(view->byte_size) : 0;
    return bytes;
  }

  TypedNet net_;
  Node node_;
  AttributeTable table_;
  std::vector<TensorType> types_;  // of the outputs, whose extents the views show
  std::deque<heddle_tensor> views_;
  std::vector<const heddle_tensor*> inputs_;
  std::vector<heddle_tensor*> outputs_;
  std::vector<std::shared_ptr<const Blob>> blobs_;
  std::deque<int64_t> extents_;
  std::optional<KernelCall> call_;
  KernelInstance made_;
  NoServices services_;
  bool lowered_ = false;
  Status status_;
};

inline Status Prepared::make(const Case& c, bool memory) {
  node_.name = c.type;
  node_.domain = c.domain;
  node_.type = c.type;
  node_.attributes = c.attributes;
  node_.schema = net_.registry->find_operator(c.domain, c.type);
  if (!node_.schema) return {Code::unknown_operator, "no operator " + c.type};
  table_ = AttributeTable(*node_.schema, node_.attributes);
  const auto value = [&](const TensorType& type) {
    net_.types.push_back(type);
    return ValueId(net_.types.size() - 1);
  };
  for (const Input& input : c.inputs) {
    if (input.dtype == DType::none) {
      inputs_.push_back(nullptr);
      node_.inputs.push_back(ValueId());
      continue;
    }
    void* data = nullptr;
    if (memory || input.known) {
      std::byte* bytes = nullptr;
      const auto blob = Blob::allocate(input.dtype, input.shape, &bytes);
      std::memset(bytes, 0, static_cast<size_t>(blob->bytes));
      for (size_t i = 0; i < input.content.size(); ++i) {
        if (input.dtype == DType::i64) reinterpret_cast<int64_t*>(bytes)[i] = input.content[i];
        if (input.dtype == DType::f32) reinterpret_cast<float*>(bytes)[i] = static_cast<float>(input.content[i]);
      }
      if (input.dtype == DType::boolean) std::memset(bytes, 1, static_cast<size_t>(blob->bytes));
      blobs_.push_back(blob);
      data = bytes;
    }
    views_.push_back(tensor_view(input.dtype, input.shape, data));
    inputs_.push_back(&views_.back());
    node_.inputs.push_back(value({input.dtype, input.shape}));
  }
  types_.resize(c.outputs);
  HEDDLE_CHECK(infer_operator(*node_.schema, table_, inputs_, std::vector<char>(c.outputs, 1), types_, &services_));
  for (const TensorType& type : types_) {
    if (type.dynamic) return {Code::unsupported, "its outputs have no extents: give the contents that decide them"};
    std::byte* data = nullptr;
    if (memory) blobs_.push_back(Blob::allocate(type.dtype, type.shape, &data));
    heddle_tensor& view = views_.emplace_back(tensor_view(type.dtype, type.shape, data));
    view.extent_axis = type.bounded_axis;
    if (type.bounded_axis >= 0) view.extent = &extents_.emplace_back(type.shape[type.bounded_axis]);
    outputs_.push_back(&view);
    node_.outputs.push_back(value(type));
  }
  call_.emplace(net_, node_, "cpu:0", 2);
  const KernelEntry* kernel = call_->find();
  if (!kernel) {
    lowered_ = node_.schema->op->pointwise != nullptr;
    return lowered_ ? Status() : Status(Code::no_kernel, "no kernel for " + c.type);
  }
  const std::vector<const heddle_tensor*> outputs(outputs_.begin(), outputs_.end());
  PrepareRequest request;
  request.inputs = inputs_;
  request.outputs = outputs;
  request.max_threads = 2;
  return make_kernel(
      *call_, *kernel, [&](const KernelEntry& refused) { return call_->find(&refused); }, &request, &services_, &made_);
}

inline heddle_status Prepared::run(bool called_off) {
  std::byte *scratch = nullptr, *thread_scratch = nullptr;
  blobs_.push_back(Blob::allocate(DType::u8, Shape{made_.scratch_bytes}, &scratch));
  blobs_.push_back(Blob::allocate(DType::u8, Shape{made_.thread_scratch_bytes}, &thread_scratch));
  struct Call final : heddle_call {
    void set_error(heddle_status, std::string_view text) noexcept override { said() = text; }
    void* thread_scratch() const noexcept override { return scratch; }
    bool cancelled() const noexcept override { return stopped; }
    heddle_status move(uint32_t, void* destination, const void* source, uint64_t bytes) noexcept override {
      if (bytes > 0) std::memcpy(destination, source, bytes);
      return HEDDLE_OK;
    }
    void* scratch = nullptr;
    bool stopped = false;
  } call;
  call.scratch = thread_scratch;
  call.stopped = called_off;
  const heddle_run_state state = {1, 1, 0};
  heddle_run_context context = {};
  context.struct_size = sizeof(context);
  context.input_count = static_cast<uint32_t>(inputs_.size());
  context.output_count = static_cast<uint32_t>(outputs_.size());
  context.inputs = inputs_.data();
  context.outputs = outputs_.data();
  context.state = made_.state.get();
  context.scratch = scratch;
  if (made_.data_scratch_bytes > 0) context.data_scratch = scratch + made_.data_scratch_at;
  context.run_state = &state;
  context.host = host_table();
  context.call = &call;
  return made_.kernel->kernel->run(&context, 0, made_.tiles);
}

}  // namespace heddle::testing
