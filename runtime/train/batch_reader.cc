#include "train/batch_reader.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/exceptions.h"
#include "base/threads/signals.h"

namespace heddle {
namespace {

constexpr int nice_value = 5;
constexpr std::chrono::milliseconds look_again(20);  // how often a wait asks whether it is to stop

}  // namespace

BatchReader::BatchReader(std::shared_ptr<const Dataset> data, const BatchSequence& sequence, int threads, int ahead, int64_t end,
                         int64_t max_bad)
    : data_(std::move(data)),
      thread_count_(data_->is_in_memory() ? 0 : threads),
      end_(end < 0 ? INT64_MAX : end),
      bad_(max_bad),
      sequence_(sequence),
      slots_(static_cast<size_t>(1 + thread_count_ + (thread_count_ > 0 ? ahead : 0))) {}

BatchReader::~BatchReader() {
  {
    const MutexLock lock(mutex_);
    ends_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

Result<const SampleBatch*> BatchReader::take(int64_t number, const std::function<Status()>& stop) {
  {
    const MutexLock lock(mutex_);
    if (Slot* const slot = find(number); slot && slot->state == State::taken) return &slot->read;
    for (Slot& slot : slots_)
      if (slot.state == State::taken) slot.state = State::free;
    if (number != expected_) continue_from(number);
    expected_ = -1;  // until it is there
    changed_.notify_all();
  }
  start_threads();
  if (threads_.empty() || number >= end_) read_here(number);
  const MutexLock lock(mutex_);
  Slot* slot = find(number);
  while (!slot || slot->state != State::ready) {
    HEDDLE_CHECK(stop());
    changed_.wait_for(mutex_, look_again);
    slot = find(number);
  }
  if (!slot->status.ok()) {
    slot->state = State::free;
    return std::exchange(slot->status, Status());
  }
  slot->state = State::taken;
  expected_ = number + 1;
  return &slot->read;
}

void BatchReader::read_here(int64_t number) {
  MutexLock lock(mutex_);
  Slot* slot = find_free();
  while (!slot) {  // until a thread has read what is no longer wanted
    changed_.wait(mutex_);
    slot = find_free();
  }
  Status status = begin(*slot, number);
  lock.unlock();
  if (status.ok()) status = read(*slot);
  lock.lock();
  slot->status = std::move(status);
  slot->state = State::ready;
}

int64_t BatchReader::ready() const {
  const MutexLock lock(mutex_);
  return std::count_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.state == State::ready; });
}

// The threads are made when the first batch is taken. Where there are none to be had, take() reads.
void BatchReader::start_threads() {
  if (!threads_.empty() || thread_count_ == 0) return;
  const SignalsBlocked blocked;
  threads_.reserve(static_cast<size_t>(thread_count_));
  try {
    while (threads_.size() < static_cast<size_t>(thread_count_)) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
  }
}

void BatchReader::work() noexcept {
  ::setpriority(PRIO_PROCESS, 0, nice_value);  // of this thread alone, on Linux
  MutexLock lock(mutex_);
  for (;;) {
    Slot* const slot = ends_ ? nullptr : find_free();
    if (ends_) return;
    if (!slot || next_ >= end_) {
      changed_.wait(mutex_);
      continue;
    }
    Status status = begin(*slot, next_++);
    lock.unlock();
    if (status.ok()) status = read(*slot);
    lock.lock();
    slot->status = std::move(status);
    slot->state = slot->is_wanted ? State::ready : State::free;
    changed_.notify_all();
  }
}

BatchReader::Slot* BatchReader::find_free() {
  const auto found = std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.state == State::free; });
  return found == slots_.end() ? nullptr : &*found;
}

BatchReader::Slot* BatchReader::find(int64_t number) {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [&](const Slot& slot) { return slot.number == number && slot.is_wanted && slot.state != State::free; });
  return found == slots_.end() ? nullptr : &*found;
}

// Returns an error where there is no memory.
Status BatchReader::begin(Slot& slot, int64_t number) noexcept {
  slot.state = State::reading;
  slot.number = number;
  slot.is_wanted = true;
  try {
    const BatchRequest request = sequence_.request(number);
    slot.read.padding = request.padding;
    slot.read.epoch = request.epoch;
    slot.read.seed = request.seed;
    slot.read.samples.assign(request.samples, request.samples + request.count);
    return {};
  } catch (...) {
    return status_of_exception();
  }
}

Status BatchReader::read(Slot& slot) noexcept {
  try {
    if (slot.read.samples.empty()) return {};  // another rank has them
    return bad_.read(*data_, slot.read);
  } catch (...) {
    return status_of_exception();
  }
}

// Drops what was read ahead.
void BatchReader::continue_from(int64_t number) {
  for (Slot& slot : slots_) {
    slot.is_wanted = false;
    if (slot.state == State::ready) slot.state = State::free;
  }
  next_ = number;
}

}  // namespace heddle
