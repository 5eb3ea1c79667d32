// Completion: the end of a step whose kernel only starts it (`start` in a kernel class).
#pragma once

#include "heddle/abi.h"
#include "heddle/op/contexts.h"
#include "heddle/op/plugin_status.h"

namespace heddle {
namespace plugin {

// Says once, from any thread, that a step is done: with ok, when its outputs are written, or why not. A value, to be stored or handed on;
// what the step's context points to stays until then.
class Completion {
 public:
  explicit Completion(const RunContext& context) : host_(context.host), call_(context.call) {}
  // Behind a call of this nothing of the step may be touched, nor may it be called again: who may lose a race for it, against abort() say,
  // decides that among its own. False: it was refused, because another thread is just at it.
  bool operator()(const Status& status) const {
    return host_->complete(call_, status.code, status.text.data(), status.text.size()) == HEDDLE_OK;
  }

 private:
  const heddle_host* host_;
  const heddle_call* call_;
};

}  // namespace plugin
}  // namespace heddle
