// VariableStore: the state of a session. Each variable has one buffer for as long as the session lives; runs read and write it in place.
//
// Runs that only read share the store; a run that updates has it alone; both wait their turn in order of arrival. Failed updates leave
// marks: a torn variable refuses runs until somebody writes it.
#pragma once

#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

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

  // For runs.
  std::shared_mutex& mutex() const { return mutex_; }
  void mark_torn(size_t i) { entries_[i].torn = true; }
  // Ok, or Code::hazard naming the torn variable.
  Status whole() const;

 private:
  struct Entry {
    std::string name;
    std::shared_ptr<const Blob> blob;
    std::byte* data = nullptr;
    bool torn = false;
  };
  std::vector<Entry> entries_;
  mutable std::shared_mutex mutex_;
};

}  // namespace heddle
