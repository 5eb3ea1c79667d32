#include "base/threads/clock.h"
#include "compile/compile.h"
#include "compile/draft.h"
#include "net/batch_parts.h"

namespace heddle {

Result<std::shared_ptr<const Plan>> compile(TypedNet net, const CompilationTarget& target, const CompileOptions& options,
                                            std::vector<Diagnostic> warnings) {
  compiling::Draft draft(std::move(net), target, options);
  draft.plan.warnings = std::move(warnings);
  draft.batch_parts = batch_parts(draft.typed.net);
  const std::string name = draft.typed.net.name;
  const auto passes = {compiling::find_devices,     compiling::select_kernels,  compiling::assign_layouts,  compiling::assign_storage,
                       compiling::upload_constants, compiling::find_groups,     compiling::order_steps,     compiling::pace_sums,
                       compiling::assign_streams,   compiling::prepare_kernels, compiling::plan_faults,     compiling::plan_staging,
                       compiling::plan_memory,      compiling::lay_out,         compiling::add_fault_steps, compiling::add_fences};
  for (const auto pass : passes) {
    if (options.interruption) HEDDLE_CHECK(options.interruption->status());
    const uint64_t begin = ticks();
    Status status = pass(draft);
    if (pass == compiling::prepare_kernels && options.prepare_ns) *options.prepare_ns += static_cast<int64_t>(ticks_to_ns(ticks() - begin));
    if (!status.ok()) return std::move(status).in_net(name);
  }
  return std::make_shared<const Plan>(std::move(draft.plan));
}

}  // namespace heddle
