#include "commands/plugin/session_host.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text/text.h"
#include "infer/infer.h"
#include "infer/registry_evaluator.h"
#include "plugin/abi_attributes.h"
#include "plugin/infer_operator.h"
#include "resolve/resolve.h"

namespace heddle::tool {
namespace {

Shape shape_of(const heddle_tensor& view) {
  return {view.dims, view.rank};
}

Status as_many(const Net& net, size_t inputs, size_t outputs) {
  if (net.inputs.size() == inputs && net.outputs.size() >= outputs) return {};
  return {Code::subnet_mismatch, fmt::format("the net takes {} inputs and has {} outputs, the operator gives {} and wants {}",
                                             net.inputs.size(), net.outputs.size(), inputs, outputs)};
}

}  // namespace

Status SessionHost::infer_subnet(const heddle_subnet* subnet, Views inputs, std::span<heddle_type* const> outputs) {
  const Net& net = *from_abi(subnet);
  HEDDLE_CHECK(as_many(net, inputs.size(), outputs.size()));
  HEDDLE_TRY(Net resolved, resolve(net, registry_));
  const auto evaluator = make_registry_evaluator(registry_);
  HEDDLE_TRY(const TypedNet typed, infer(std::move(resolved), registry_, subnet_options(inputs, evaluator.get(), {})));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) *outputs[i] = subnet_output_type(typed, i);
  return {};
}

Result<Session*> SessionHost::session_of(const Net& net, Views inputs) {
  std::string types;
  for (const heddle_tensor* input : inputs)
    types += fmt::format("{}{} ", to_string(static_cast<DType>(input->dtype)), shape_of(*input).text());
  const auto found = sessions_.find({&net, types});
  if (found != sessions_.end()) return &found->second;
  if (!net.variables.empty())
    return Status(Code::unsupported, "the net has variables, which only a session of the whole net keeps", "see heddle run");
  if (!runtime_) {
    HEDDLE_TRY(runtime_, make_runtime_());
  }
  Net typed = net;
  for (size_t i = 0; i < inputs.size(); ++i)
    typed[typed.inputs[i]].type = DeclaredType::of(static_cast<DType>(inputs[i]->dtype), shape_of(*inputs[i]));
  HEDDLE_TRY(Session session, runtime_->open(std::move(typed)));
  return &sessions_.emplace(std::pair(&net, types), std::move(session)).first->second;
}

Status SessionHost::run_subnet(const heddle_subnet* subnet, uint64_t trip, Views inputs, std::span<heddle_tensor* const> outputs) {
  const Net& net = *from_abi(subnet);
  if (trip > last_trip_)
    return {Code::limit_exceeded, fmt::format("net {} was run {} times", quoted(net.name), trip), "let it end earlier on any input"};
  HEDDLE_CHECK(as_many(net, inputs.size(), outputs.size()));
  for (const heddle_tensor* input : inputs)
    if (!input) return {Code::subnet_mismatch, "an input of the net is absent"};
  HEDDLE_TRY(Session* const session, session_of(net, inputs));
  std::vector<TensorView> feeds;
  for (const heddle_tensor* input : inputs) feeds.push_back({static_cast<DType>(input->dtype), shape_of(*input), input->data});
  RunOptions options;
  options.seed = trip;
  HEDDLE_TRY(std::vector<Tensor> results, session->run(feeds, options));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    Tensor& from = results[i];
    heddle_tensor& to = *outputs[i];
    const auto bytes = static_cast<uint64_t>(from.byte_size());
    if (!to.data) continue;
    if (to.byte_size != bytes || to.dtype != static_cast<heddle_dtype>(from.dtype()) || shape_of(to) != from.shape())
      return {Code::subnet_mismatch, fmt::format("output {} is {}{}, the operator has room for {}{}", i, to_string(from.dtype()),
                                                 from.shape().text(), to_string(static_cast<DType>(to.dtype)), shape_of(to).text())};
    if (bytes > 0) std::memcpy(to.data, from.data(), bytes);
  }
  results_ = std::move(results);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] && !outputs[i]->data) *outputs[i] = tensor_view(results_[i].dtype(), results_[i].shape(), results_[i].data());
  return {};
}

}  // namespace heddle::tool
