#include "commands/plugin/check/operator_examination.h"

#include <fmt/format.h>

#include <optional>

#include "base/text.h"
#include "commands/plugin/check/call_examination.h"
#include "commands/plugin/check/gradient_examination.h"
#include "commands/plugin/check/layout_examination.h"
#include "commands/plugin/check/pointwise_examination.h"
#include "commands/plugin/check/watched_run.h"
#include "plugin/operator_runner.h"

namespace heddle::tool {
namespace {

constexpr int64_t small = 1000;  // elements, of what is run many times

class OperatorExamination {
 public:
  OperatorExamination(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed, DeviceExamination* device)
      : registry_(registry), schema_(schema), seed_(seed), device_(device), coverage_(registry, schema) {}
  OperatorVerdict examine(const OperatorCase* only);

 private:
  Finding examine_all();
  Finding examine_case(const OperatorCase& one);
  Finding examine_refusal(const OperatorCase& one, const Status& status);
  Finding examine_run(const OperatorCase& one, const Blobs& outputs);
  bool allows_f32() const {
    const heddle_port* const first = schema_.input_port(0);
    return first && (first->dtypes & HEDDLE_DTYPE_BIT(HEDDLE_F32)) != 0;
  }

  const RegistrySnapshot& registry_;
  const OperatorSchema& schema_;
  const uint64_t seed_;
  DeviceExamination* const device_;
  Coverage coverage_;
  bool ran_ = false;
  // A call that went well, and what it gave.
  struct Before {
    OperatorCall call;
    std::string about;
    Blobs outputs;
  };
  std::optional<Before> before_;
  // Why it would not have the inputs with the most dimensions, which says more than what it thinks of scalars.
  int refused_rank_ = -1;
  std::string refusal_;
};

int64_t elements_of(const OperatorCall& call) {
  int64_t count = 0;
  for (const auto& input : call.inputs) count += input ? input->shape.element_count() : 0;
  return count;
}

// Of a call that failed and did not refuse: extents and outputs are the host's words (operator_runner.h).
const char* broken_promise(const Status& status) {
  const std::string& said = status.diagnostic().message;
  return said.find("wrote extent") != std::string::npos || said.find("allocated no output") != std::string::npos ? "extent" : "error-path";
}

// A refusal says why, leaves nothing behind, and changes nothing for the calls that follow.
Finding OperatorExamination::examine_refusal(const OperatorCase& one, const Status& status) {
  if (one.is_example()) return {"example", fmt::format("refuses its own example: {}", status.text())};
  const int rank = one.call.inputs.empty() || !one.call.inputs[0] ? 0 : one.call.inputs[0]->shape.rank();
  if (rank > refused_rank_) {
    refused_rank_ = rank;
    refusal_ = fmt::format("{}: {}", one.about, status.diagnostic().message);
  }
  if (status.diagnostic().message.find("and no text") != std::string::npos) return {"error-path", "refuses without saying why"};
  Finding found = find_leaks(registry_, one.call);
  if (!found.ok() || !before_) return found;
  const auto again = run_operator(registry_, before_->call);
  if (!again.ok())
    return {"error-path", fmt::format("refuses {} behind a call that it refused: {}", before_->about, again.status().text())};
  if (!same_bits(before_->outputs, *again)) return {"error-path", "gives other bits behind a call that it refused"};
  return {};
}

Finding OperatorExamination::examine_run(const OperatorCase& one, const Blobs& outputs) {
  const OperatorCall& call = one.call;
  Finding found = compare_with_example(one, outputs);
  if (!found.ok()) return found;
  if (const auto cost = operator_cost(registry_, call); !cost.ok()) return {"cost", fmt::format("gives no cost: {}", cost.status().text())};
  found = examine_call(registry_, schema_, call, outputs);
  if (!found.ok()) return found;
  const auto named = [](const char* mistake, std::string text) { return Finding{mistake, std::move(text)}; };
  if (device_) found = named("device", device_->examine(schema_, call, outputs));
  if (found.ok()) found = named("pointwise-differs", examine_pointwise(registry_, schema_, call, outputs));
  const int64_t elements = elements_of(call);
  if (found.ok() && elements < small) found = named("layout", examine_layouts(registry_, call, outputs));
  // f64 stands in for f32 there, where it can.
  const bool wide = !call.inputs.empty() && call.inputs[0] && call.inputs[0]->dtype == DType::f64;
  if (found.ok() && elements > 0 && !(wide && allows_f32()))
    found = named("gradient", examine_gradient(registry_, schema_, call, outputs, seed_));
  return found;
}

// The input that holds indices of nothing at all.
std::optional<size_t> indexes_nothing(const OperatorSchema& schema, const OperatorCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.inputs[i] && call.inputs[i]->bytes > 0 && index_bound(schema, call, i) == 0) return i;
  return {};
}

Finding OperatorExamination::examine_case(const OperatorCase& one) {
  const std::string about = fmt::format(" ({})", one.about);
  const auto wrong = indexes_nothing(schema_, one.call);
  describe({about, wrong ? "index-unchecked" : ""});
  if (one.call.output_count == 0) return {};
  // In guarded memory from the first run on: what a kernel breaks there is told, and breaks nothing else.
  const WatchedRun first(registry_, one.call, GuardedBytes::Side::behind, 0);
  const auto& outputs = first.outputs();
  if (!outputs.ok() && first.end().refused()) return examine_refusal(one, outputs.status()).with(about);
  if (wrong) return Finding{"index-unchecked", fmt::format("takes indices of nothing in input {}", *wrong)}.with(about);
  if (!outputs.ok()) return Finding{broken_promise(outputs.status()), outputs.status().text()}.with(about);
  // What is made once for all runs, as caches of libraries, may allocate.
  if (!first.found().ok() && first.found().mistake != std::string_view("allocates")) return Finding(first.found()).with(about);
  ran_ = true;
  coverage_.ran(one.call);
  if (Finding found = examine_run(one, *outputs); !found.ok() || before_ || schema_.has_trait(HEDDLE_TRAIT_RANDOM))
    return std::move(found).with(about);
  auto kept = run_operator(registry_, one.call);
  if (kept.ok()) before_ = Before{one.call, one.about, std::move(*kept)};
  return {};
}

Finding OperatorExamination::examine_all() {
  const auto cases = operator_cases(schema_, seed_);
  if (!cases.ok()) return {"example", cases.status().text()};
  for (const auto* list : {&cases->examples, &cases->generic})
    for (const OperatorCase& one : *list)
      if (Finding found = examine_case(one); !found.ok()) return found;
  // Also what no generic inputs fit: examples do.
  for (const DType dtype : coverage_.dtypes())
    for (OperatorCase one : cases->examples)
      if (in_dtype(schema_, dtype, one))
        if (Finding found = examine_case(one); !found.ok()) return found;
  const std::string special = ran_ ? examine_special_values(registry_, schema_, seed_) : std::string();
  return {"pointwise-differs", special};
}

OperatorVerdict OperatorExamination::examine(const OperatorCase* only) {
  const Finding found = only ? examine_case(*only) : examine_all();
  if (!found.ok()) return {Verdict::of(found), {}};
  const auto not_run = [](std::string reason) { return OperatorVerdict{{Verdict::Kind::not_run, "", std::move(reason)}, {}}; };
  if (!ran_ && refusal_.empty()) return not_run("it has no outputs that are not optional, and no example");
  if (!ran_) return not_run(only ? refusal_ : fmt::format("no generic inputs fit it, {}", refusal_));
  if (device_ && !device_->ran()) return not_run(fmt::format("on {}: {}", device_->device(), device_->refusal()));
  return {{}, only ? std::vector<std::string>() : coverage_.missing()};
}

}  // namespace

OperatorVerdict examine_operator(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed, DeviceExamination* device,
                                 const OperatorCase* only) {
  return OperatorExamination(registry, schema, seed, device).examine(only);
}

}  // namespace heddle::tool
