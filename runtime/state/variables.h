// VariableStore: the state of a session, which its nets have in common by the names of variables. Each variable has one buffer for as long
// as the session lives; runs read and write it in place.
//
// Runs that only read share the store; a run that updates has it alone; both wait their turn in order of arrival. Failed updates leave
// marks: a torn variable refuses runs until it is written.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/threads/fair_shared_mutex.h"
#include "device/device.h"
#include "device/unanswered.h"
#include "heddle/limits.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

class VariableStore : public std::enable_shared_from_this<VariableStore> {
 public:
  // Buffers for the variables of all `nets`, in the order in which their names come first, filled with the content that the first net has
  // which has any, or by the initializer of the first that has one, from `seed`, in fill(): a net that is only looked at fills nothing.
  // Errors: weights_missing when none has either; dtype_mismatch, shape_mismatch and weights_mismatch, naming both nets,
  // when two disagree; limit_exceeded (plan_bytes), for all together that no file has the bytes of.
  static Result<std::shared_ptr<VariableStore>> create(std::span<const Net* const> nets, uint64_t seed = 0, const Limits& limits = {});
  // Fills those that have no content but a rule, once: who makes a context does it, and whoever takes a turn before. Errors:
  // deadline_exceeded, cancelled, between two variables: the next call goes on.
  Status fill(const Interruption& until = {}) const;
  // Fills those that have an initializer by it, in turn with runs. Errors: hazard, naming one that was written since it was made, with
  // `overwrite` never; those of write().
  Status initialize(uint64_t seed, bool overwrite, const Interruption& until = {});

  size_t size() const { return entries_.size(); }
  std::vector<std::string> names() const;
  const std::string& name(size_t i) const { return entries_[i].name; }
  DType dtype(size_t i) const { return entries_[i].blob->dtype; }
  const Shape& shape(size_t i) const { return entries_[i].blob->shape; }
  std::byte* data(size_t i) const { return entries_[i].data; }
  int64_t bytes() const;
  // Copies in or out of row-major bytes, in turn with runs. Writing mends a torn variable. Errors: busy (the calling thread is in a run
  // that holds the variables, or a device does that did not answer), deadline_exceeded.
  Status read(size_t i, void* destination, const Interruption& until = {}) const;
  Status write(size_t i, const void* source, const Interruption& until = {});

  // Copies of all of them, as they are at one point between runs. Errors: those of read(); hazard, naming one that is torn.
  Result<std::vector<std::shared_ptr<const Blob>>> snapshot(const Interruption& until = {}) const;
  // Writes those whose content is not null, each of its own dtype and shape, in one turn: a run sees all of them or none. Errors: those of
  // write(), before anything is written.
  Status replace(std::span<const std::shared_ptr<const Blob>> contents, const Interruption& until = {});

  // Beside its bytes on the host a variable has a home on each device whose operators use it; whichever was not written last is stale
  // and is brought up to date when it is needed. Addresses stay as they are. Errors: out_of_memory, device_failed.
  Status make_home(size_t i, const std::shared_ptr<Device>& device);
  // Of a home that was made.
  std::byte* data_on(size_t i, const Device& device) const;
  bool has_homes() const { return has_homes_.load(std::memory_order_acquire); }
  // For runs, in their turn; null: the host. `written` by those that have it alone. Errors of freshen: device_failed; deadline_exceeded and
  // cancelled, where a device does not answer.
  Status freshen(size_t i, const Device* device, const Interruption& until = {}) const;
  void written(size_t i, const Device* device);

  // A turn with all variables. Errors: cancelled, deadline_exceeded, busy.
  Status enter(FairSharedMutex::Hold& hold, FairSharedMutex::Use use, const Interruption& until = {}) const;
  FairSharedMutex& turns() const { return turns_; }
  // Those that wait for their turn, or for a copy that another run makes, look whether they were cancelled.
  void wake() const {
    turns_.wake();
    copying_.wake();
  }
  // In a turn alone.
  void mark_torn(size_t i) { entries_[i].torn = true; }
  void mark_trained(size_t i) { entries_[i].trained = true; }
  // In a turn alone: a device that does not answer may still write some of them. Turns are busy until it does.
  void block(std::shared_ptr<const Unanswered> until) { unanswered_ = std::move(until); }
  // Ok, or Code::hazard naming the torn variable; device_lost where the newest content went with a device.
  Status whole() const;

 private:
  struct Home {
    std::shared_ptr<Device> device;
    DeviceMemory memory;
    bool stale = true;
    // For copies to the host; made when one is needed.
    std::shared_ptr<const Blob> staging;
    std::byte* staging_data = nullptr;
  };
  struct Entry {
    std::string name;
    std::shared_ptr<const Blob> blob;
    std::byte* data = nullptr;
    bool torn = false;
    std::string initializer;     // empty: none
    bool trained = false;        // it had content, or was written since it was filled; by those in a turn alone
    mutable bool stale = false;  // the host's bytes
    std::vector<std::unique_ptr<Home>> homes;
  };
  static Home* home_on(const Entry& e, const Device& device);
  Status copy_to_host(const Entry& e, const CopyWait& wait) const;
  Status copy_to_home(const Entry& e, const Device& device, const CopyWait& wait) const;
  void overwrite(size_t i, const void* source);
  std::vector<Entry> entries_;
  uint64_t seed_ = 0;  // of the first contents
  mutable std::mutex filling_;
  mutable size_t next_to_fill_ = 0;  // entry; those before it have a content
  mutable std::atomic<bool> filled_{false};
  std::atomic<bool> has_homes_{false};
  mutable std::mutex homes_mutex_;   // of homes and what is stale
  mutable FairSharedMutex copying_;  // between the host and homes
  mutable FairSharedMutex turns_;
  std::shared_ptr<const Unanswered> unanswered_;
};

}  // namespace heddle
