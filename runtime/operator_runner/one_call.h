// OneCall: one operator called on its own, through all stages of the ABI.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator_runner/call_host.h"
#include "operator_runner/operator_runner.h"
#include "operator_runner/packed_constants.h"
#include "operator_runner/run_call.h"
#include "plugin/kernel_instance.h"

namespace heddle {

// The services of a call to infer, create and prepare.
class Packs : public CallServices {
 public:
  explicit Packs(const OperatorCall& call) : call_(call), kept_(call.conditions.packed ? *call.conditions.packed : own_) {}
  const void* prepack(uint32_t input, const std::string& key, uint64_t bytes, heddle_prepack_fill fill, void* user,
                      std::string& error) override {
    return kept_.find_or_pack(call_, input, key, bytes, fill, user, error);
  }
  Status infer_subnet(const heddle_subnet* subnet, heddle_call::Views inputs, std::span<heddle_type* const> outputs) override {
    return call_.host ? call_.host->infer_subnet(subnet, inputs, outputs) : Status(Code::unsupported, "subnets need a session");
  }
  // Subnets are made when they are run.
  Status declare_subnet(const heddle_subnet*, heddle_call::Views) override { return {}; }
  const std::vector<Attribute>* attributes() const override { return &call_.attributes; }
  Result<uint32_t> need(const heddle_resource_need& need) override {
    return call_.host ? call_.host->need(need) : CallServices::need(need);
  }
  void* resource(uint32_t slot) override { return call_.host ? call_.host->resource(slot) : nullptr; }

 private:
  const OperatorCall& call_;
  PackedConstants own_;
  PackedConstants& kept_;
};

// The state of one call of one operator, through all its phases.
struct OneCall {
  OneCall(const RegistrySnapshot& snapshot, const OperatorCall& operator_call, CallEnd& call_end)
      : call(operator_call), end(call_end), packs(operator_call) {
    net.registry = std::shared_ptr<const RegistrySnapshot>(std::shared_ptr<void>(), &snapshot);  // not owned: the caller's
  }
  const OperatorCall& call;
  CallEnd& end;
  // The call as the one node of a net: inputs and outputs are values 0, 1, ...
  TypedNet net;
  Node node;
  AttributeTable table;
  std::vector<heddle_tensor> input_views;
  std::vector<const heddle_tensor*> inputs;
  std::vector<TensorType> output_types;
  std::vector<std::optional<CallBytes>> output_bytes;  // none: dynamic
  std::vector<std::shared_ptr<Blob>> output_blobs;
  std::vector<heddle_tensor> output_views;
  std::vector<heddle_tensor*> outputs;
  std::deque<int64_t> extents;
  Packs packs;
  std::optional<KernelCall> kernel_call;  // outlives the state
  KernelInstance made;

  // Operands of an epilogue follow the schema's own inputs.
  size_t own_inputs() const {
    size_t own = inputs.size();
    while (!call.epilogue_ops.empty() && own > 0 && !node.schema->input_port(own - 1)) --own;
    for (const OperatorCall::EpilogueOp& s : call.epilogue_ops)
      if (s.operand_input >= 0) own = std::min(own, static_cast<size_t>(s.operand_input));
    return own;
  }
  Status infer();
  const KernelEntry* select();
  Status allocate_outputs();
  Status share(uint32_t output, uint32_t input);
  Status make(const KernelEntry& first);
  Status use_before(const RegistrySnapshot& registry);
  Status run();

 private:
  Status take_attributes();
  Status pad();
  void bound();
  // The request passed to prepare, valid until this is called again.
  const PrepareRequest& prepare_request();
  heddle_status run_ranges(RunCall& run, heddle_run_context& context, std::deque<CallBytes>& of_threads);
  Status collect(const RunCall& run);

  std::shared_ptr<const Blob> padded_;  // input 0 with rows beyond its extent
  std::vector<Attribute> attributes_;   // the table refers to them
  int64_t true_rows_ = 0;
  std::vector<heddle_tensor> blind_;
  std::vector<const heddle_tensor*> blind_inputs_, const_outputs_;
  PrepareRequest request_;
};

}  // namespace heddle
