#include "commands/run/dump.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "tensors/compare.h"
#include "tensors/layout_order.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {

std::string FileNames::of(const std::string& name, const std::string& owner) {
  const std::string plain = file_name_of(name);
  std::string file = plain;
  for (int n = 2; owners_.try_emplace(file, owner).first->second != owner; ++n) file = plain + "_" + std::to_string(n);
  return file;
}

namespace {

// Whose outputs a step's are: the last operator's that was fused into it.
const std::string& producer_of(const PlanStep& step) {
  return step.fused.empty() ? step.name : step.fused.back();
}
bool is_named(const PlanStep& step, const std::string& only) {
  return only.empty() || step.name == only || step.type == only ||
         std::find(step.fused.begin(), step.fused.end(), only) != step.fused.end() ||
         std::find(step.fused_types.begin(), step.fused_types.end(), only) != step.fused_types.end();
}

}  // namespace

std::filesystem::path Dump::file(const PlanStep& plan_step, uint32_t step, size_t k) {
  const std::string& name = producer_of(plan_step);
  const std::string output = k == 0 ? name : name + "." + std::to_string(k);
  return std::filesystem::path(folder_) / (names_.of(output, std::to_string(step) + "." + std::to_string(k)) + ".npy");
}

Status Dump::create(const std::string& folder, const std::string& only, const Plan& plan, FileRoles& roles, Dump* dump) {
  dump->folder_ = folder;
  dump->only_ = only;
  if (!only.empty() && std::none_of(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& step) { return is_named(step, only); })) {
    std::vector<std::string> names;
    for (const PlanStep& step : plan.steps) {
      names.push_back(step.name);
      names.insert(names.end(), step.fused.begin(), step.fused.end());
    }
    const std::string hint = suggestion(only, names);
    return {Code::unknown_name, "--only " + quoted(only) + ": no operator of the plan has this name or type",
            hint.empty() ? "`heddle plan` lists the operators that are left after folding" : hint};
  }
  for (uint32_t step = 0; step < plan.steps.size(); ++step)
    for (size_t k = 0; k < plan.steps[step].outputs.size(); ++k)
      if (is_named(plan.steps[step], only) && plan.steps[step].outputs[k].value.valid())
        HEDDLE_CHECK(roles.writes("--dump", dump->file(plan.steps[step], step, k)));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? Status(Code::file_unwritable, "--dump " + quoted(folder) + ": " + error.message()) : Status();
}

Status Dump::write(Execution& execution, uint32_t step) {
  const PlanStep& s = execution.plan().steps[step];
  if (!is_named(s, only_)) return {};
  const std::string& name = producer_of(s);
  for (size_t k = 0; k < s.outputs.size(); ++k) {
    if (!s.outputs[k].value.valid()) continue;
    const heddle_tensor& view = execution.view(s.outputs[k].value);
    if (!is_order(view.layout, view.rank))
      return {Code::unsupported,
              "output " + std::to_string(k) + " of " + quoted(name) + " is in a layout of its own, which --dump can't write",
              "choose other operators with --only"};
    TensorView tensor = true_view(view);
    std::vector<std::byte> staging;
    HEDDLE_TRY(tensor.data, execution.on_host(s.outputs[k].value, staging));
    std::vector<std::byte> ordered;
    if (view.layout.rank != 0) {
      ordered = row_major(tensor, view.layout);
      tensor.data = ordered.data();
    }
    HEDDLE_CHECK(write_tensor(file(s, step, k).string(), name, tensor));
  }
  return {};
}

}  // namespace heddle::tool
