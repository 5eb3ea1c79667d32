// The result of Session::check when there is no memory for its findings: a list of one error. It needs some memory itself, which is
// allocated when the net is opened.
#pragma once

#include <utility>
#include <vector>

#include "base/threads/mutex.h"
#include "heddle/status.h"

namespace heddle {

// Thread-safe.
class SpareFindings {
 public:
  SpareFindings() { spare_.reserve(1); }
  // Returns `failure` as the only finding.
  std::vector<Diagnostic> take(Status failure) noexcept {
    std::vector<Diagnostic> findings;
    const MutexLock lock(mutex_);
    try {
      findings.reserve(1);
      if (spare_.capacity() == 0) spare_.reserve(1);
    } catch (...) {
      if (findings.capacity() == 0) findings = std::exchange(spare_, {});
    }
    findings.push_back(std::move(failure.diagnostic()));
    return findings;
  }

 private:
  Mutex mutex_;
  std::vector<Diagnostic> spare_ HEDDLE_GUARDED_BY(mutex_);  // has room for one
};

}  // namespace heddle
