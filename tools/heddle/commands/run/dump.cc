#include "commands/run/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text/text.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {

std::string FileNames::of(const std::string& name, const std::string& owner) {
  const std::string plain = file_name_of(name);
  std::string file = plain;
  for (int n = 2; owners_.try_emplace(file, owner).first->second != owner; ++n) file = fmt::format("{}_{}", plain, n);
  return file;
}

namespace {

// The operator whose outputs a step has: the last one that was fused into it.
const std::string& producer_of(const PlanInfo::Step& step) {
  return step.fused.empty() ? step.name : step.fused.back();
}
bool is_named(const PlanInfo::Step& step, const std::string& only) {
  return only.empty() || step.name == only || step.type == only ||
         std::find(step.fused.begin(), step.fused.end(), only) != step.fused.end() ||
         std::find(step.fused_types.begin(), step.fused_types.end(), only) != step.fused_types.end();
}

}  // namespace

std::filesystem::path Dump::file(size_t step, size_t k) {
  const std::string& name = producer_of(plan_->steps[step]);
  const std::string output = k == 0 ? name : fmt::format("{}.{}", name, k);
  return std::filesystem::path(folder_) / (names_.of(output, fmt::format("{}.{}", step, k)) + ".npy");
}

Status Dump::create(const std::string& folder, const std::string& only, std::shared_ptr<const PlanInfo> info, FileRoles& roles,
                    Dump* dump) {
  dump->plan_ = std::move(info);
  const PlanInfo& plan = *dump->plan_;
  dump->folder_ = folder;
  dump->only_ = only;
  if (!only.empty() &&
      std::none_of(plan.steps.begin(), plan.steps.end(), [&](const PlanInfo::Step& step) { return is_named(step, only); })) {
    std::vector<std::string> names;
    for (const PlanInfo::Step& step : plan.steps) {
      names.push_back(step.name);
      names.insert(names.end(), step.fused.begin(), step.fused.end());
    }
    const std::string hint = suggestion(only, names);
    return {Code::unknown_name, fmt::format("--only {}: no operator of the plan has this name or type", quoted(only)),
            hint.empty() ? "`heddle plan` lists the operators that are left after folding" : hint};
  }
  for (size_t step = 0; step < plan.steps.size(); ++step)
    for (size_t k = 0; k < plan.steps[step].outputs.size(); ++k)
      if (is_named(plan.steps[step], only) && plan.steps[step].outputs[k].value) HEDDLE_CHECK(roles.writes("--dump", dump->file(step, k)));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? Status(Code::file_unwritable, fmt::format("--dump {}: {}", quoted(folder), error.message())) : Status();
}

Status Dump::write(StepView& view) {
  const PlanInfo::Step& step = plan_->steps[view.step()];
  if (!is_named(step, only_)) return {};
  const std::string& name = producer_of(step);
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    if (!step.outputs[k].value) continue;
    const Result<TensorView> tensor = view.read_output(k);
    if (!tensor.ok() && tensor.status().code() == Code::unsupported)
      return {Code::unsupported, fmt::format("output {} of {} is in a layout of its own, which --dump can't write", k, quoted(name)),
              "choose other operators with --only"};
    HEDDLE_CHECK(tensor.status());
    HEDDLE_CHECK(write_tensor(file(view.step(), k).string(), name, *tensor));
  }
  return {};
}

}  // namespace heddle::tool
