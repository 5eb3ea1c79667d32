// One kernel prepared for inputs of one content and run with those of another, every tensor and all scratch between guard pages: a kernel
// must bear this, however it is called.
#pragma once

#include <cstring>
#include <deque>

#include "guarded_memory.h"
#include "operators/no_services.h"
#include "operators/pointwise_support.h"
#include "plugin/infer_operator.h"
#include "plugin/kernel_instance.h"

namespace heddle::testing {

class KernelRun {
 public:
  // Infers with the content of `call`. prepare gets inputs without content, as where it is known only during the run.
  explicit KernelRun(const OperatorCall& call) : call_(call), snapshot_(cpu_registry().snapshot()) {
    net_.registry = snapshot_;
    node_.schema = snapshot_->find_operator(call.domain, call.type);
    node_.name = call.type;
    node_.attributes = call.attributes;
    if (!node_.schema) error_ = "there is no operator " + call.type;
    if (error_.empty()) note(infer());
    if (error_.empty()) note(make());
  }
  // Returns why it could not be prepared; empty: it was.
  const std::string& error() const { return error_; }
  const std::vector<TensorType>& types() const { return types_; }
  const OperatorSchema& schema() const { return *node_.schema; }

  // Runs with other content of the same shapes. Returns "ok" and the bytes of all outputs (in the format of outputs_text), or the kernel's
  // error.
  std::string run(const std::vector<Tensor>& inputs, Guard guard) {
    std::deque<GuardedMemory> memory;
    std::vector<heddle_tensor> input_views(inputs.size()), output_views(types_.size());
    std::vector<const heddle_tensor*> in;
    std::vector<heddle_tensor*> out;
    std::vector<int64_t> extents(types_.size(), 0);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i]) {
        std::byte* const data = memory.emplace_back(static_cast<uint64_t>(inputs[i]->bytes), guard).data();
        if (inputs[i]->bytes > 0) std::memcpy(data, inputs[i]->data, static_cast<size_t>(inputs[i]->bytes));
        input_views[i] = tensor_view(inputs[i]->dtype, inputs[i]->shape, data);
      }
      in.push_back(inputs[i] ? &input_views[i] : nullptr);
    }
    for (size_t i = 0; i < types_.size(); ++i) {
      std::byte* const data = memory.emplace_back(static_cast<uint64_t>(types_[i].byte_size()), guard).data();
      if (types_[i].byte_size() > 0) std::memset(data, 0x5a, static_cast<size_t>(types_[i].byte_size()));
      output_views[i] = tensor_view(types_[i].dtype, types_[i].shape, data);
      output_views[i].extent_axis = types_[i].bounded_axis;
      if (types_[i].bounded_axis >= 0) output_views[i].extent = &extents[i];
      out.push_back(&output_views[i]);
    }
    const heddle_run_state state = {0, 0, 0};
    Call call;
    call.scratch = memory.emplace_back(static_cast<uint64_t>(made_.thread_scratch_bytes + 63) / 64 * 64, guard).data();
    heddle_run_context c = {};
    c.struct_size = sizeof(c);
    c.input_count = static_cast<uint32_t>(in.size());
    c.output_count = static_cast<uint32_t>(out.size());
    c.inputs = in.data();
    c.outputs = out.data();
    c.state = made_.state.get();
    c.scratch = memory.emplace_back(static_cast<uint64_t>(made_.scratch_bytes + 63) / 64 * 64, guard).data();
    if (made_.data_scratch_bytes > 0) c.data_scratch = static_cast<std::byte*>(c.scratch) + made_.data_scratch_at;
    c.run_state = &state;
    c.host = host_table();
    c.call = &call;
    heddle_status status = made_.tiles > 0 ? made_.kernel->kernel->run(&c, 0, made_.tiles) : HEDDLE_OK;
    if (status == HEDDLE_OK && made_.kernel->kernel->finish) status = made_.kernel->kernel->finish(&c);
    if (status != HEDDLE_OK) return call.error;
    std::vector<Tensor> results;
    for (size_t i = 0; i < types_.size(); ++i) {
      Shape shape = types_[i].shape;
      if (types_[i].bounded_axis >= 0) {
        if (extents[i] < 0 || extents[i] > shape[types_[i].bounded_axis]) return "ok, with an extent beyond its bound";
        shape[types_[i].bounded_axis] = extents[i];
      }
      results.push_back(Blob::copy_of(types_[i].dtype, shape, output_views[i].data));
    }
    return outputs_text(results);
  }
  static std::string outputs_text(const std::vector<Tensor>& outputs) {
    std::string text = "ok";
    for (const Tensor& t : outputs)
      text += " " + t->shape.text() + " " + std::string(reinterpret_cast<const char*>(t->data), static_cast<size_t>(t->bytes));
    return text;
  }

 private:
  struct Call final : heddle_call {
    void set_error(heddle_status, std::string_view text) noexcept override { error = text; }
    void* thread_scratch() const noexcept override { return scratch; }
    heddle_status move(uint32_t, void* destination, const void* source, uint64_t bytes) noexcept override {
      if (bytes > 0) std::memcpy(destination, source, bytes);
      return HEDDLE_OK;
    }
    std::string error;
    void* scratch = nullptr;
  };
  void note(const Status& status) {
    if (!status.ok()) error_ = status.text();
  }
  Status infer() {
    std::vector<heddle_tensor> views(call_.inputs.size());
    std::vector<const heddle_tensor*> inputs;
    for (size_t i = 0; i < views.size(); ++i) {
      const Tensor& t = call_.inputs[i];
      if (t) views[i] = tensor_view(t->dtype, t->shape, const_cast<std::byte*>(t->data));
      inputs.push_back(t ? &views[i] : nullptr);
    }
    types_.resize(call_.output_count);
    const std::vector<char> wanted(call_.output_count, 1);
    const AttributeTable table(*node_.schema, call_.attributes);
    return infer_operator(*node_.schema, table, inputs, wanted, types_, &services_);
  }
  Status make() {
    std::vector<heddle_tensor> views;
    views.reserve(call_.inputs.size() + types_.size());
    net_.types.reserve(call_.inputs.size() + types_.size());  // views point to the shapes in it
    std::vector<const heddle_tensor*> inputs, outputs;
    std::deque<int64_t> extents;
    const auto add = [&](const TensorType& type) {
      net_.types.push_back(type);
      views.push_back(tensor_view(type.dtype, net_.types.back().shape, nullptr));
      views.back().extent_axis = type.bounded_axis;
      if (type.bounded_axis >= 0) views.back().extent = &extents.emplace_back(0);
      return ValueId(net_.types.size() - 1);
    };
    for (const Tensor& t : call_.inputs) {
      node_.inputs.push_back(t ? add({t->dtype, t->shape}) : ValueId());
      inputs.push_back(t ? &views.back() : nullptr);
    }
    for (const TensorType& type : types_) {
      node_.outputs.push_back(add(type));
      outputs.push_back(&views.back());
    }
    kernel_call_.emplace(net_, node_, "cpu:0", 1);
    const KernelEntry* const first = kernel_call_->find();
    if (!first) return {Code::no_kernel, "there is no kernel"};
    PrepareRequest request;
    request.inputs = inputs;
    request.outputs = outputs;
    return make_kernel(
        *kernel_call_, *first, [&](const KernelEntry& k) { return kernel_call_->find(&k); }, &request, &services_, &made_);
  }

  const OperatorCall& call_;
  std::shared_ptr<const RegistrySnapshot> snapshot_;
  TypedNet net_;
  Node node_;
  std::vector<TensorType> types_;
  std::string error_;
  NoServices services_;
  std::optional<KernelCall> kernel_call_;  // outlives the state
  KernelInstance made_;
};

}  // namespace heddle::testing
