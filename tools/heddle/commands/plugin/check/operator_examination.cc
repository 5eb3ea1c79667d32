#include "commands/plugin/check/operator_examination.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

#include "base/element.h"
#include "base/text/text.h"
#include "commands/plugin/check/call_examination.h"
#include "commands/plugin/check/commutative_examination.h"
#include "commands/plugin/check/epilogue_examination.h"
#include "commands/plugin/check/gradient_examination.h"
#include "commands/plugin/check/index_examination.h"
#include "commands/plugin/check/layout_examination.h"
#include "commands/plugin/check/pointwise_examination.h"
#include "commands/plugin/check/watch/watched_run.h"
#include "operator_runner/operator_runner.h"
#include "tensors/compare.h"
#include "tensors/convert.h"

namespace heddle::tool {
namespace {

constexpr int64_t small = 1000;  // in elements, of calls that are run many times

class OperatorExamination {
 public:
  OperatorExamination(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed, CallHost* host,
                      DeviceExamination* device)
      : registry_(registry), schema_(schema), seed_(seed), host_(host), device_(device), coverage_(registry, schema) {}
  OperatorVerdict examine(const OperatorCase* only);

 private:
  Finding examine_all();
  Finding examine_case(const OperatorCase& one);
  Finding examine_refusal(const OperatorCase& one, const Status& status);
  Finding examine_run(const OperatorCase& one, const Blobs& outputs);
  Finding examine_with_epilogues(const OperatorCall& call, const Blobs& outputs);
  std::optional<OperatorCase> of_rounded_numbers(const OperatorCase& one, DType dtype) const;
  Finding examine_dtypes(OperatorCase one);
  bool allows_f32() const {
    const heddle_port* const first = schema_.input_port(0);
    return first && (first->dtypes & HEDDLE_DTYPE_BIT(HEDDLE_F32)) != 0;
  }

  const RegistrySnapshot& registry_;
  const OperatorSchema& schema_;
  const uint64_t seed_;
  CallHost* const host_;
  DeviceExamination* const device_;
  Coverage coverage_;
  std::optional<DtypeDependence> depends_;  // computed from its examples
  bool ran_ = false;
  bool asks_epilogue_ = false, has_epilogue_ = false;  // its kernel may be offered epilogues; accepted any
  // A call that succeeded, and its results.
  struct Before {
    OperatorCall call;
    std::string about;
    Blobs outputs;
  };
  std::optional<Before> before_;
  // Why it refused the inputs with the most dimensions, which tells more than a refusal of scalars.
  int refused_rank_ = -1;
  std::string refusal_;
};

int64_t elements_of(const OperatorCall& call) {
  int64_t count = 0;
  for (const auto& input : call.inputs) count += input ? input->shape.element_count() : 0;
  return count;
}

// The promise that a failed call has broken, without refusing: extents and outputs are reported by the host (operator_runner.h), elements
// by op/contexts.h.
const char* broken_promise(const Status& status) {
  const std::string& said = status.diagnostic().message;
  if (said.find("the port takes ") != std::string::npos) return "dtype";
  return said.find("wrote extent") != std::string::npos || said.find("allocated no output") != std::string::npos ? "extent" : "error-path";
}

// A refusal must give a reason, leak nothing, and have no effect on later calls.
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
  OperatorCall next = before_->call;
  const bool same_node = std::equal(next.attributes.begin(), next.attributes.end(), one.call.attributes.begin(), one.call.attributes.end(),
                                    [](const Attribute& a, const Attribute& b) { return a.name == b.name && a.value == b.value; });
  if (same_node) next.conditions.inputs_before = &one.call.inputs;
  const auto again = run_operator(registry_, next);
  if (!again.ok()) return {"error-path", fmt::format("refuses {} after a call that it refused: {}", before_->about, again.status().text())};
  if (!same_bits(before_->outputs, *again)) return {"error-path", "gives other bits after a call that it refused"};
  return {};
}

Finding OperatorExamination::examine_with_epilogues(const OperatorCall& call, const Blobs& outputs) {
  EpilogueFinding with = examine_epilogues(registry_, call, outputs);
  asks_epilogue_ = asks_epilogue_ || with.asked;
  has_epilogue_ = has_epilogue_ || with.accepted;
  return std::move(with.found);
}

Finding OperatorExamination::examine_run(const OperatorCase& one, const Blobs& outputs) {
  const OperatorCall& call = one.call;
  Finding found = compare_with_example(one, outputs);
  if (found.ok()) found = examine_bools(outputs);
  if (!found.ok()) return found;
  if (const auto cost = operator_cost(registry_, call); !cost.ok()) return {"cost", fmt::format("gives no cost: {}", cost.status().text())};
  found = examine_call(registry_, schema_, call, outputs);
  if (!found.ok()) return found;
  const auto named = [](const char* mistake, std::string text) { return Finding{mistake, std::move(text)}; };
  if (device_) found = named("device", device_->examine(schema_, call, outputs));
  if (found.ok()) found = named("pointwise-differs", examine_pointwise(registry_, schema_, call, outputs));
  if (found.ok()) found = named("commutative", examine_commutative(registry_, schema_, call, outputs));
  const int64_t elements = elements_of(call);
  if (found.ok() && elements < small) found = named("layout", examine_layouts(registry_, call, outputs));
  if (found.ok() && elements < small) found = examine_with_epilogues(call, outputs);
  // f64 is used instead of f32 there, where possible.
  const bool wide = !call.inputs.empty() && call.inputs[0] && call.inputs[0]->dtype == DType::f64;
  if (found.ok() && elements > 0 && !(wide && allows_f32()))
    found = named("gradient", examine_gradient(registry_, schema_, call, outputs, seed_));
  return found;
}

// The input that holds indices into an empty input.
std::optional<size_t> indexes_nothing(const OperatorSchema& schema, const OperatorCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.inputs[i] && call.inputs[i]->bytes > 0 && index_bound(schema, call, i) == 0) return i;
  return {};
}

Finding OperatorExamination::examine_case(const OperatorCase& one) {
  const std::string about = fmt::format(" ({})", one.about);
  const auto wrong = indexes_nothing(schema_, one.call);
  const Describing here({about, wrong ? "index-unchecked" : ""});
  if (one.call.output_count == 0) return {};
  // Guarded memory is used from the first run on: mistakes of a kernel are reported there, and damage nothing else.
  OperatorCall with_state = one.call;
  with_state.conditions.gives_state = true;  // else a kernel that draws numbers without declaring it ends the process
  const WatchedRun first(registry_, with_state, GuardedBytes::Side::behind, 0);
  const auto& outputs = first.outputs();
  if (!outputs.ok() && first.end().refused()) return examine_refusal(one, outputs.status()).with(about);
  if (wrong && (!outputs.ok() || reads_indices(registry_, schema_, one.call, *wrong)))
    return Finding{"index-unchecked", fmt::format("takes indices of nothing in input {}", *wrong)}.with(about);
  if (!outputs.ok()) return Finding{broken_promise(outputs.status()), outputs.status().text()}.with(about);
  // One-time allocations for all runs, such as caches of libraries, are allowed.
  if (!first.found().ok() && first.found().mistake != std::string_view("allocates")) return Finding(first.found()).with(about);
  int64_t bytes = 0;
  for (const auto& output : *outputs) bytes += output ? output->bytes : 0;
  if (bytes > one.max_output_bytes) return {};  // it does not count as run either
  ran_ = true;
  coverage_.ran(one.call);
  if (Finding found = examine_run(one, *outputs); !found.ok() || before_ || schema_.has_trait(HEDDLE_TRAIT_RANDOM))
    return std::move(found).with(about);
  auto kept = run_operator(registry_, one.call);
  if (kept.ok()) before_ = Before{one.call, one.about, std::move(*kept)};
  return {};
}

// The results of the call for its numbers rounded to floats of `dtype`; none: it does not accept them.
std::optional<OperatorCase> OperatorExamination::of_rounded_numbers(const OperatorCase& one, DType dtype) const {
  OperatorCase there = one, rounded = one;
  if (!in_dtype(schema_, 0, dtype, there)) return {};
  for (size_t i = 0; i < one.call.inputs.size(); ++i) {
    const auto &wide = one.call.inputs[i], &narrow = there.call.inputs[i];
    if (wide && wide->dtype != narrow->dtype && is_float(wide->dtype) && is_float(narrow->dtype))
      rounded.call.inputs[i] = converted(*narrow, wide->dtype);
  }
  const auto outputs = run_operator(registry_, rounded.call);
  if (!outputs.ok()) return {};
  rounded.expected.resize(outputs->size());
  for (size_t o = 0; o < outputs->size(); ++o)
    if (!rounded.expected[o].content) rounded.expected[o] = {false, (*outputs)[o]->dtype, (*outputs)[o]->shape, (*outputs)[o]};
  return rounded;
}

// All dtypes must compute the same: the results of the call are expected in each of the others, as far as they hold the numbers.
Finding OperatorExamination::examine_dtypes(OperatorCase one) {
  one.call.host = host_;
  if (schema_.has_trait(HEDDLE_TRAIT_RANDOM) || !run_operator(registry_, one.call).ok()) return {};
  for (const DType dtype : coverage_.dtypes(0)) {
    if (!one.call.inputs.empty() && one.call.inputs[0] && depends_->between(one.call.inputs[0]->dtype, dtype)) continue;
    auto other = of_rounded_numbers(one, dtype);
    if (!other || !in_dtype(schema_, 0, dtype, *other)) continue;
    const Describing here({fmt::format(" ({})", other->about), ""});
    const auto there = run_operator(registry_, other->call);
    if (!there.ok()) continue;
    if (Finding found = compare_with_example(*other, *there); !found.ok()) return std::move(found).with(fmt::format(" ({})", other->about));
  }
  return {};
}

Finding OperatorExamination::examine_all() {
  const auto cases = operator_cases(schema_, seed_, host_);
  if (!cases.ok()) return {"example", cases.status().text()};
  for (const auto* list : {&cases->examples, &cases->generic})
    for (const OperatorCase& one : *list)
      if (Finding found = examine_case(one); !found.ok()) return found;
  depends_.emplace(cases->examples);
  for (const auto& list : {cases->examples, whole_number_cases(schema_, seed_)})
    for (const OperatorCase& one : list)
      if (Finding found = examine_dtypes(one); !found.ok()) return found;
  // Covers operators that no generic inputs fit: examples do.
  for (uint32_t port = 0; port < schema_.op->input_count; ++port)
    for (const DType dtype : coverage_.dtypes(port, port > 0))
      for (OperatorCase one : cases->examples) {
        const DType own = one.call.inputs.empty() || !one.call.inputs[0] ? dtype : one.call.inputs[0]->dtype;
        if (!in_dtype(schema_, port, dtype, one)) continue;
        if (port == 0 && depends_->between(own, dtype)) one.expected.clear();
        if (Finding found = examine_case(one); !found.ok()) return found;
      }
  if (!ran_) return {};
  const std::string swapped = examine_commutative_values(registry_, schema_, seed_);
  if (!swapped.empty()) return {"commutative", swapped};
  return {"pointwise-differs", examine_special_values(registry_, schema_, seed_)};
}

OperatorVerdict OperatorExamination::examine(const OperatorCase* only) {
  const Finding found = only ? examine_case(*only) : examine_all();
  if (!found.ok()) return {Verdict::of(found), {}};
  const auto not_run = [](std::string reason) { return OperatorVerdict{{Verdict::Kind::not_run, "", std::move(reason)}, {}}; };
  if (!ran_ && refusal_.empty()) return not_run("it has no outputs that are not optional, and no example");
  if (!ran_) return not_run(only ? refusal_ : fmt::format("no generic inputs fit it, {}", refusal_));
  if (device_ && !device_->ran()) return not_run(fmt::format("on {}: {}", device_->device(), device_->refusal()));
  if (only) return {};
  std::vector<std::string> missing = coverage_.missing();
  if (asks_epilogue_ && !has_epilogue_) missing.emplace_back("an epilogue");
  return {{}, std::move(missing)};
}

}  // namespace

OperatorVerdict examine_operator(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed, CallHost* host,
                                 DeviceExamination* device, const OperatorCase* only) {
  OperatorVerdict verdict = OperatorExamination(registry, schema, seed, host, device).examine(only);
  verdict.notes = notes_of_asynchronous();
  return verdict;
}

std::vector<uint64_t> operator_results(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed, CallHost* host,
                                       bool last_first) {
  const auto cases = operator_cases(schema, seed, host);
  if (!cases.ok()) return {};
  std::vector<const OperatorCase*> all;
  for (const auto* list : {&cases->examples, &cases->generic})
    for (const OperatorCase& one : *list)
      if (elements_of(one.call) < small) all.push_back(&one);
  std::vector<uint64_t> results(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t at = last_first ? all.size() - 1 - i : i;
    const auto outputs = run_operator(registry, all[at]->call);
    for (size_t o = 0; outputs.ok() && o < outputs->size(); ++o)
      results[at] =
          results[at] * 31 + 1 +
          std::hash<std::string_view>()({reinterpret_cast<const char*>((*outputs)[o]->data), static_cast<size_t>((*outputs)[o]->bytes)});
  }
  return results;
}

}  // namespace heddle::tool
