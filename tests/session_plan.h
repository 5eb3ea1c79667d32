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

// Drops the contexts that the session keeps for its last plan: the next one is made of the plan as it is now.
inline void drop_idle_contexts(const Session& session) {
  const std::shared_ptr<PlanEntry> entry = last_plan_entry(session);
  entry->last_idle.exchange();
  const MutexLock lock(entry->mutex);
  entry->idle.clear();
}

inline size_t kept_plans(const Session& session) {
  Session::Impl& net = Internals::of(session);
  const MutexLock lock(net.mutex);
  return net.plans.size();
}

}  // namespace heddle
