// Memory that Loop and Scan keep outside the plan while they run, where extents are known only during the run: from the first call of run()
// to the last, and its allocations from one run to the next.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "heddle/op.h"

namespace heddle::cpu {

// Keeps one T between runs, in the kernel's state, so that successive runs allocate nothing; a concurrent run makes its own. Any thread. It
// stays as large as a run has made it until the kernel is destroyed, and no memory count includes it.
template <class T>
class Spare {
 public:
  Spare() = default;
  ~Spare() { delete one_.load(); }
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  std::unique_ptr<T> take() const {
    std::unique_ptr<T> one(one_.exchange(nullptr));
    return one ? std::move(one) : std::make_unique<T>();
  }
  void give(std::unique_ptr<T> one) const {
    T* none = nullptr;
    if (one_.compare_exchange_strong(none, one.get())) static_cast<void>(one.release());
  }

 private:
  mutable std::atomic<T*> one_{nullptr};
};

// The T of one run: taken by the first call of run(), given back by the one that is not pending. `at`: a place in scratch.
template <class T>
class Kept {
 public:
  Kept(const plugin::RunContext& context, T** at, const Spare<T>& spare)
      : at_(at), spare_(spare), kept_(context.resumed ? std::unique_ptr<T>(*at) : spare.take()) {}
  ~Kept() {
    if (kept_) spare_.give(std::move(kept_));
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  T& operator*() { return *kept_; }
  // Leaves the T in scratch if `status`, of this call, is pending. Returns `status`.
  plugin::Status end_call(plugin::Status status) {
    if (status.code == HEDDLE_PENDING) *at_ = kept_.release();
    return status;
  }

 private:
  T** at_;
  const Spare<T>& spare_;
  std::unique_ptr<T> kept_;
};

}  // namespace heddle::cpu
