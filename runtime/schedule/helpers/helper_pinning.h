// HelperPinning: keeps each helper thread on a processor of its own, off the one where runs are started. Without it a helper that has slept
// is woken on the waking thread's processor and the two share it, so helpers stay pinned while they sleep.
//
// Thread-safe. Threads are known by kernel id and removed before they end.
#pragma once

#include <memory>
#include <vector>

namespace heddle {

class HelperPinning {
 public:
  // `processors`: where helpers may be. With fewer than two nothing is ever pinned.
  explicit HelperPinning(const std::vector<int>& processors);
  ~HelperPinning();
  HelperPinning(const HelperPinning&) = delete;
  HelperPinning& operator=(const HelperPinning&) = delete;

  // [helper] Pins the calling thread, if it is not pinned yet. Threads in excess of the processors are not pinned.
  void enter();
  // [thread that starts a run] Moves the helper that sits on this thread's processor to one where no helper is.
  void make_room() noexcept;
  // Returns the number of helpers pinned to each processor, in the order given to the constructor; for tests.
  std::vector<int> helpers_per_processor() const;

 private:
  struct Table;
  struct Membership;
  // Shared with the threads' exit hooks, which may run after this object is gone.
  std::shared_ptr<Table> table_;
};

}  // namespace heddle
