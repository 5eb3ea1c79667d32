#include "trainable/loss_choice.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/text/text.h"

namespace heddle::trainable {
namespace {

struct Kind {
  const char* name;
  LossKind kind;
};
constexpr Kind kinds[] = {
    {"cross_entropy", LossKind::cross_entropy}, {"mse", LossKind::squared_error}, {"bce", LossKind::binary_cross_entropy}};

constexpr const char* forms = "write it like cross_entropy:logits,labels, mse:output,target or bce:logits,target";

}  // namespace

Result<LossChoice> LossChoice::parse(const std::string& text) {
  const size_t colon = text.find(':'), comma = text.rfind(',');
  if (colon == std::string::npos || comma == std::string::npos || comma < colon + 2 || comma + 1 == text.size())
    return Status(Code::invalid_argument, fmt::format("--loss {}: it does not say a kind, a value and a name for the labels", quoted(text)),
                  forms);
  const std::string name = text.substr(0, colon);
  LossChoice made;
  made.value = text.substr(colon + 1, comma - colon - 1);
  made.labels = text.substr(comma + 1);
  std::vector<std::string> names;
  for (const Kind& kind : kinds) {
    names.emplace_back(kind.name);
    if (name != kind.name) continue;
    made.kind = kind.kind;
    return made;
  }
  const std::string near = suggestion(name, names);
  return Status(Code::unknown_name, fmt::format("--loss: there is no loss {}", quoted(name)),
                near.empty() ? fmt::format("the losses are {}", join(names, ", ")) : near);
}

Status check_names(const Net& net, const LossChoice& loss) {
  std::vector<std::string> made;
  for (const Value& value : net.values)
    if (value.kind == Value::Kind::node_output) made.push_back(value.name);
  const std::optional<ValueId> value = net.find_value(loss.value);
  if (!value) {
    const std::string near = suggestion(loss.value, made);
    std::vector<std::string> outputs;
    for (const ValueId output : net.outputs) outputs.push_back(net[output].name);
    return {Code::unknown_name, fmt::format("--loss: the model has no value {}", quoted(loss.value)),
            near.empty() ? fmt::format("its outputs are {}", all_quoted(outputs)) : near};
  }
  if (net[*value].kind != Value::Kind::node_output)
    return {Code::invalid_argument, fmt::format("--loss: {} is computed by no operator", quoted(loss.value)),
            "name an output of the model"};
  std::vector<std::string> added = {"loss"};
  if (loss.counts_classes()) added.emplace_back("accuracy");
  for (const std::string& name : added) {
    if (name == loss.labels)
      return {Code::duplicate_name, fmt::format("--loss: {} is the name of a result, and not free for an input", quoted(name)),
              "give the labels another name"};
    if (net.find_value(name))
      return {Code::duplicate_name, fmt::format("--loss: the model has a value {} already, as the result is to be called", quoted(name)),
              "rename it in the model, or leave its own loss out when exporting"};
  }
  if (net.find_value(loss.labels))
    return {Code::duplicate_name, fmt::format("--loss: the model has a value {} already", quoted(loss.labels)),
            "give the labels another name"};
  return {};
}

Result<DeclaredType> labels_type(const LossChoice& loss, const DeclaredType& value) {
  const DType dtype = value.dtype;
  if (dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32 && dtype != DType::f64)
    return Status(Code::dtype_mismatch, fmt::format("--loss: {} is {}, and a loss needs floats", quoted(loss.value), to_string(dtype)),
                  "name the value from which it is computed");
  if (!loss.counts_classes()) return value;
  if (value.dims.size() < 2)
    return Status(
        Code::shape_mismatch,
        fmt::format("--loss: {} has {} dims, and logits have at least 2: [N, classes, ...]", quoted(loss.value), value.dims.size()),
        "name the logits, or take mse or bce for one number of each sample");
  DeclaredType labels = value;
  labels.dtype = DType::i64;
  labels.dims.erase(labels.dims.begin() + 1);
  return labels;
}

}  // namespace heddle::trainable
