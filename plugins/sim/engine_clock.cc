// The clock of the simulated devices (Engine): hold, advance, release, and the work done by it.
#include <algorithm>
#include <cstdio>

#include "engine.h"

namespace sim {

void Engine::hold() {
  const std::lock_guard<std::mutex> lock(mutex_);
  horizon_ = clock_;
}

void Engine::advance(uint64_t ns) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (horizon_ == UINT64_MAX) horizon_ = clock_;
  horizon_ += ns;
  settled_ = false;
  changed_.notify_all();
  changed_.wait(lock, [&] { return settled_; });
  clock_ = std::max(clock_, horizon_);
}

void Engine::let_go() {
  const std::lock_guard<std::mutex> lock(mutex_);
  horizon_ = UINT64_MAX;
  settled_ = false;
  changed_.notify_all();
}

uint64_t Engine::now() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return clock_;
}

uint64_t Engine::spans(sim_span* spans, uint64_t capacity) {
  const std::lock_guard<std::mutex> lock(mutex_);
  notes_spans_ = true;
  std::copy_n(spans_.begin(), std::min<size_t>(capacity, spans_.size()), spans);
  return spans_.size();
}

void Engine::forget_spans() {
  const std::lock_guard<std::mutex> lock(mutex_);
  notes_spans_ = true;
  spans_.clear();
}

void Engine::note_span(const Stream& stream, const Job& job, uint64_t begin, uint64_t end) {
  if (!notes_spans_) return;
  sim_span span = {begin, end, job.label, stream.number_, stream.settings.device, stream.stream_class, {}};
  std::snprintf(span.name, sizeof(span.name), "%s", job.name());
  spans_.push_back(span);
}

}  // namespace sim
