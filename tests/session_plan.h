// The plans that a session keeps, for tests and benchmarks that look into them.
#pragma once

#include <cstddef>
#include <memory>

#include "session/session_impl.h"

namespace heddle {

// Returns the entry of the plan that was used last. The session must have one.
inline std::shared_ptr<PlanEntry> last_plan_entry(const Session& session) {
  Session::Impl& net = Internals::of(session);
  const MutexLock lock(net.mutex);
  return net.plans.front();
}

inline std::shared_ptr<const Plan> last_plan(const Session& session) {
  return last_plan_entry(session)->plan;
}

inline size_t kept_plans(const Session& session) {
  Session::Impl& net = Internals::of(session);
  const MutexLock lock(net.mutex);
  return net.plans.size();
}

}  // namespace heddle
