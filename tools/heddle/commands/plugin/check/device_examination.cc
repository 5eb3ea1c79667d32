#include "commands/plugin/check/device_examination.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "net/net.h"

namespace heddle::tool {
namespace {

using Blobs = std::vector<std::shared_ptr<const Blob>>;

TensorView feed_of(const Blob& blob) {
  return {blob.dtype, blob.shape, const_cast<std::byte*>(blob.data)};
}

Net net_of(const OperatorSchema& schema, const OperatorCall& call, std::vector<TensorView>* feeds) {
  NetBuilder b("operator");
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const std::string name = fmt::format("input{}", i);
    const heddle_port* const port = schema.input_port(i);
    if (!call.inputs[i]) {
      inputs.emplace_back();
    } else if (schema.updating_output(i) >= 0) {
      inputs.push_back(b.variable(name, call.inputs[i]));
    } else if (port && (port->flags & HEDDLE_PORT_SHAPE_OPERAND)) {
      inputs.push_back(b.constant(name, call.inputs[i]));
    } else {
      inputs.push_back(b.input(name, call.inputs[i]->dtype, call.inputs[i]->shape));
      feeds->push_back(feed_of(*call.inputs[i]));
    }
  }
  const std::vector<ValueId> outputs = b.add(call.type, "operator", inputs, call.output_count, call.attributes, call.domain);
  for (const ValueId output : outputs) b.output(output);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const int output = schema.updating_output(i); inputs[i].valid() && output >= 0)
      b.updates(outputs[static_cast<size_t>(output)], inputs[i]);
  b.net().operator_sets = {{call.domain, call.version}};
  return b.finish();
}

std::string compare_bits(const std::vector<Tensor>& actual, const Blobs& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const Blob& e = *expected[i];
    if (i >= actual.size() || actual[i].dtype() != e.dtype || actual[i].shape() != e.shape)
      return fmt::format("output {} is of another type", i);
    if (e.bytes > 0 && std::memcmp(actual[i].data(), e.data, static_cast<size_t>(e.bytes)) != 0)
      return fmt::format("output {} has other bits", i);
  }
  return {};
}

}  // namespace

Result<std::optional<std::vector<Tensor>>> DeviceExamination::outputs(const OperatorSchema& schema, const OperatorCall& call) {
  const std::optional<std::vector<Tensor>> not_there;
  std::vector<TensorView> feeds;
  SessionOptions options;
  options.device = device_;
  options.copies = Copies::strict;
  options.communicators.emplace_back();  // whatever their names, they are this process alone
  auto session = runtime_.open(net_of(schema, call, &feeds), options);
  const auto plan = session.ok() ? session->plan(feeds) : Result<std::shared_ptr<const PlanInfo>>(session.status());
  if (!plan.ok()) {
    refusal_ = plan.status().diagnostic().message;
    refusal_code_ = plan.status().code();
    return not_there;
  }
  // Views and folded nodes leave no step: then the plan has done all the work.
  for (const PlanInfo::Step& step : (*plan)->steps)
    if (step.device != device_ && step.type != "Copy" && !step.auxiliary) {
      refusal_ = fmt::format("the plan runs it on {}", step.device);
      refusal_code_ = Code::ok;
      return not_there;
    }
  HEDDLE_TRY(std::vector<Tensor> given, session->run(feeds));
  ran_ = true;
  return std::optional(std::move(given));
}

std::string DeviceExamination::examine(const OperatorSchema& schema, const OperatorCall& call, const Blobs& expected) {
  const auto actual = outputs(schema, call);
  if (!actual.ok()) return fmt::format("fails on {}: {}", device_, actual.status().text());
  if (!*actual) return {};
  const std::string wrong = schema.has_trait(HEDDLE_TRAIT_RANDOM) ? std::string() : compare_bits(**actual, expected);
  return wrong.empty() ? wrong : fmt::format("on {} {}", device_, wrong);
}

}  // namespace heddle::tool
