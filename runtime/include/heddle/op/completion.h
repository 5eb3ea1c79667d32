// Completion: reports that a step is done, for kernels that only start their steps (`start` in a kernel class).
#pragma once

#include "heddle/abi.h"
#include "heddle/op/contexts.h"
#include "heddle/op/plugin_status.h"

namespace heddle {
namespace plugin {

// Reports once, from any thread, that a step is done: with ok if the outputs of the step are written, else with the reason. A Completion
// may be copied, stored and passed on. Everything that the step's context points to stays valid until the report.
class Completion {
 public:
  explicit Completion(const RunContext& context) : host_(context.host), call_(context.call) {}
  // Completes the step. After this call the plugin must not access anything of the step, nor complete the step again. If two threads may
  // want to complete the step, for example one of them in abort(), the plugin must decide which of the two does it. Returns false if the
  // report was refused because the step was completed already, or because `status` is pending.
  bool operator()(const Status& status) const {
    return host_->complete(call_, status.code, status.text.data(), status.text.size()) == HEDDLE_OK;
  }

 private:
  const heddle_host* host_;
  const heddle_call* call_;
};

}  // namespace plugin
}  // namespace heddle
