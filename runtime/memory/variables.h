// VariableStore: the state of a session. Each variable has one buffer for as long as the session lives; runs read and write it in place.
//
// Runs that only read share the store; a run that updates has it alone; both wait their turn in order of arrival. Failed updates leave
// marks: a torn variable refuses runs until somebody writes it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "device/device.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

class VariableStore {
 public:
  // Buffers for the variables of `net`, filled with their initial content. Code::weights_missing when one has none.
  static Result<std::unique_ptr<VariableStore>> create(const Net& net);

  size_t size() const { return entries_.size(); }
  const std::string& name(size_t i) const { return entries_[i].name; }
  DType dtype(size_t i) const { return entries_[i].blob->dtype; }
  const Shape& shape(size_t i) const { return entries_[i].blob->shape; }
  std::byte* data(size_t i) const { return entries_[i].data; }
  int64_t bytes() const;
  // Copies in or out, waiting for runs that are under way. Sizes must match: Code::shape_mismatch. Writing mends a torn variable.
  Status read(size_t i, void* destination, int64_t bytes) const;
  Status write(size_t i, const void* source, int64_t bytes);

  // Beside its bytes on the host a variable has a home on each device whose operators use it; whichever was not written last is stale
  // and is brought up to date when it is needed. Addresses stay as they are. Errors: out_of_memory, device_failed.
  Status make_home(size_t i, const std::shared_ptr<Device>& device);
  // Of a home that was made.
  std::byte* data_on(size_t i, const Device& device) const;
  bool has_homes() const { return has_homes_.load(std::memory_order_acquire); }
  // For runs, under mutex(); null: the host. `written` by those that have it alone.
  Status freshen(size_t i, const Device* device) const;
  void written(size_t i, const Device* device);

  // For runs.
  std::shared_mutex& mutex() const { return mutex_; }
  void mark_torn(size_t i) { entries_[i].torn = true; }
  // Ok, or Code::hazard naming the torn variable.
  Status whole() const;

 private:
  struct Home {
    std::shared_ptr<Device> device;
    DeviceMemory memory;
    bool stale = true;
  };
  struct Entry {
    std::string name;
    std::shared_ptr<const Blob> blob;
    std::byte* data = nullptr;
    bool torn = false;
    mutable bool stale = false;  // the host's bytes
    mutable std::vector<Home> homes;
  };
  std::vector<Entry> entries_;
  std::atomic<bool> has_homes_{false};
  mutable std::mutex homes_mutex_;  // of homes and what is stale
  mutable std::shared_mutex mutex_;
};

}  // namespace heddle
