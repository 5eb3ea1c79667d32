#include "communicator/launched_collectives.h"

#include <algorithm>

namespace heddle::nccl {
namespace {

Status make_events(size_t count, std::vector<Event*>* events) {
  events->reserve(count);
  for (size_t i = 0; i < count; ++i) {
    Event* made = nullptr;
    HEDDLE_NCCL_CUDA_CALL(cudaEventCreateWithFlags, &made, event_without_timing);
    events->push_back(made);
  }
  return {};
}

}  // namespace

LaunchedCollectives::~LaunchedCollectives() {
  for (const Entry& entry : entries_)
    for (const auto* const events : {&entry.begun, &entry.ended})
      for (Event* const event : *events) Library::get().cudaEventDestroy(event);
}

Status LaunchedCollectives::make(const std::vector<int32_t>& devices) {
  devices_ = devices;
  entries_.resize(max_collectives);
  for (const int32_t device : devices) {
    const CurrentDevice current(device);
    HEDDLE_PLUGIN_CHECK(current.status());
    for (Entry& entry : entries_) {
      HEDDLE_PLUGIN_CHECK(make_events(1, &entry.begun));
      HEDDLE_PLUGIN_CHECK(make_events(1, &entry.ended));
    }
  }
  return {};
}

Status LaunchedCollectives::begin(operators::Parts parts, const std::string& node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (count_ == entries_.size()) HEDDLE_PLUGIN_CHECK(retire());
  // If the ring is full, the last entry stands for all that follow: the number and name are then those of the newest, and a message may
  // name a later collective than the one that waits.
  const bool is_new = count_ < entries_.size();
  if (is_new) ++count_;
  Entry& entry = at(count_ - 1);
  entry.number = ++number_;
  entry.is_launched = false;
  entry.name[node.copy(entry.name.data(), entry.name.size() - 1)] = '\0';
  for (size_t i = 0; is_new && i < parts.size(); ++i)
    HEDDLE_NCCL_CUDA_CALL(cudaEventRecord, entry.begun[i], static_cast<Stream*>(parts[i]->stream));
  return {};
}

Status LaunchedCollectives::end(operators::Parts parts) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Entry& entry = at(count_ - 1);
  for (size_t i = 0; i < parts.size(); ++i) HEDDLE_NCCL_CUDA_CALL(cudaEventRecord, entry.ended[i], static_cast<Stream*>(parts[i]->stream));
  entry.is_launched = true;
  return {};
}

// Whether all of the events have passed, or any.
Status LaunchedCollectives::passed(const std::vector<Event*>& events, bool all, bool* result) const {
  *result = all;
  for (Event* const event : events) {
    const CudaError error = stopped_ ? cuda_not_ready : Library::get().cudaEventQuery(event);
    if (error != cuda_success && error != cuda_not_ready) return failed("cudaEventQuery", error);
    if (error == cuda_not_ready) Library::get().cudaGetLastError();
    if ((error == cuda_success) != all) return *result = !all, Status();
  }
  return {};
}

Status LaunchedCollectives::retire() {
  while (count_ > 0 && at(0).is_launched) {
    bool done = false;
    HEDDLE_PLUGIN_CHECK(passed(at(0).ended, true, &done));
    if (!done) return {};
    first_ = (first_ + 1) % entries_.size();
    --count_;
    is_in_first_ = false;
  }
  return {};
}

Status LaunchedCollectives::look(Clock::time_point now, Clock::time_point* since) {
  const std::lock_guard<std::mutex> lock(mutex_);
  *since = now;
  HEDDLE_PLUGIN_CHECK(retire());
  if (count_ == 0) return {};
  if (!is_in_first_) {
    bool begun = false;
    HEDDLE_PLUGIN_CHECK(passed(at(0).begun, false, &begun));
    if (!begun) return {};
    is_in_first_ = true;
    since_ = now;
  }
  *since = since_;
  return {};
}

uint64_t LaunchedCollectives::last() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return number_;
}

operators::RankPosition LaunchedCollectives::position() const {
  if (connects_) return {0, "the connection of its GPUs"};
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < count_; ++i) {
    const Entry& entry = at(i);
    bool done = false, begun = false;
    if (entry.is_launched && (!passed(entry.ended, true, &done).ok() || done)) continue;
    const bool known = passed(entry.begun, false, &begun).ok();
    if (known && !begun && !stopped_) return {entry.number - 1, ""};
    return {entry.number, '"' + std::string(entry.name.data()) + '"'};
  }
  return {number_, ""};
}

}  // namespace heddle::nccl
