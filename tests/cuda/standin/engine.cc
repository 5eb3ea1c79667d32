#include "engine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace heddle::cuda::standin {

// ---------------------------------------------------------------- clocks

void Clock::add(Place place) {
  uint64_t& last = last_[place.stream];
  last = std::max(last, place.sequence);
}

void Clock::merge(const Clock& other) {
  for (const auto& [stream, sequence] : other.last_) add({stream, sequence});
}

bool Clock::covers(Place place) const {
  const auto found = last_.find(place.stream);
  return found != last_.end() && found->second >= place.sequence;
}

bool Clock::within(const Clock& one, const Clock& other) const {
  return std::all_of(last_.begin(), last_.end(), [&](const auto& entry) {
    const Place place{entry.first, entry.second};
    return one.covers(place) || other.covers(place);
  });
}

// ---------------------------------------------------------------- enqueueing

std::shared_ptr<Stream> Engine::make_stream(int device, bool blocking, bool is_default) {
  auto stream = std::make_shared<Stream>();
  stream->id = ++made_;
  stream->device = device;
  stream->blocking = blocking;
  stream->is_default = is_default;
  streams_.push_back(stream);
  return stream;
}

void Engine::let_go(const std::shared_ptr<Stream>& stream) {
  // "the resources associated with stream will be released automatically once the device has completed all work in stream"
  stream->destroyed = true;
  if (stream->done == stream->enqueued) streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
}

void Engine::add(Stream& stream, Job job) {
  job.sequence = ++stream.enqueued;
  stream.before.add(stream.place());
  stream.jobs.push_back(std::move(job));
  if (!started_) std::thread([this] { work(); }).detach();  // for as long as the process lives
  started_ = true;
  changed_.notify_all();
}

// "the legacy stream first waits on all blocking streams, the action is queued in the legacy stream, and then all blocking streams wait on
// the legacy stream" (Runtime API, Stream synchronization behavior).
Place Engine::enqueue(Stream& stream, Job::Kind kind, std::function<cudaError_t()> work) {
  std::vector<std::shared_ptr<Stream>> blocking;
  std::shared_ptr<const Stream> self;
  for (const std::shared_ptr<Stream>& other : streams_) {
    if (other.get() == &stream) self = other;
    if (stream.is_default && other->blocking && other->device == stream.device && other.get() != &stream) blocking.push_back(other);
  }
  for (const std::shared_ptr<Stream>& other : blocking) wait(stream, other, other->enqueued, other->before);
  Job job;
  job.kind = kind;
  if (!idle_ || kind == Job::Kind::memory) job.work = std::move(work);
  add(stream, std::move(job));
  const Place place = stream.place();
  for (const std::shared_ptr<Stream>& other : blocking) wait(*other, self, place.sequence, stream.before);
  return place;
}

void Engine::enqueue_when(Stream& stream, std::function<bool()> ready, std::function<cudaError_t()> work) {
  Job job;
  job.kind = Job::Kind::meeting;
  job.ready = std::move(ready);
  job.work = std::move(work);
  add(stream, std::move(job));
}

void Engine::wait(Stream& stream, const std::shared_ptr<const Stream>& awaited, uint64_t until, const Clock& before) {
  stream.before.merge(before);
  if (awaited.get() == &stream) return;  // in order anyway
  Job job;
  job.kind = Job::Kind::wait;
  job.awaited = awaited;
  job.until = until;
  add(stream, std::move(job));
}

void Engine::record(const std::shared_ptr<Stream>& stream, Event& event) {
  event.stream = stream;
  event.sequence = stream->enqueued;
  event.before = stream->before;
}

void Engine::wait_on_host(Lock& lock, const Stream& stream) {
  const uint64_t until = stream.enqueued;
  const Clock before = stream.before;
  changed_.wait(lock, [&] { return lost_ != cudaSuccess || stream.done >= until; });
  if (lost_ == cudaSuccess) known_.merge(before);
}

void Engine::lose(cudaError_t error) {
  lost_ = error;
  for (const std::shared_ptr<Stream>& stream : streams_) {
    stream->jobs.clear();
    stream->done = stream->enqueued;
  }
  changed_.notify_all();
}

void Engine::set_order(uint64_t seed, const std::string& hold) {
  if (seed != seed_) random_ = seed;
  seed_ = seed;
  hold_ = hold;
  changed_.notify_all();
}

void Engine::reset(Lock& lock) {
  lose(cudaErrorUnknown);
  changed_.wait(lock, [&] { return !working_; });
  lost_ = cudaSuccess;
  known_ = {};
  transfers_held_ = false;
}

// ---------------------------------------------------------------- the thread

uint64_t Engine::draw() {
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  return random_ >> 33;
}

bool Engine::held() const {
  return !hold_.empty() && ::access(hold_.c_str(), F_OK) == 0;
}

bool Engine::may_begin(const Stream& stream, bool held) const {
  if (stream.jobs.empty()) return false;
  const Job& job = stream.jobs.front();
  if (job.kind == Job::Kind::wait) return job.awaited->done >= job.until;
  if (job.kind == Job::Kind::meeting) return !held && job.ready();
  if (job.kind == Job::Kind::transfer && transfers_held_) return false;
  return job.kind == Job::Kind::memory || !held;
}

std::shared_ptr<Stream> Engine::choose(bool held) {
  std::vector<std::shared_ptr<Stream>> ready;
  for (size_t i = 0; i < streams_.size(); ++i) {
    const std::shared_ptr<Stream>& stream = streams_[(turn_ + 1 + i) % streams_.size()];
    if (may_begin(*stream, held)) ready.push_back(stream);
  }
  if (ready.empty()) return nullptr;
  std::shared_ptr<Stream> chosen = ready[seed_ == 0 ? 0 : draw() % ready.size()];
  // With an odd seed each stream nearly always lets certain others go first, so that some lag far.
  if (seed_ % 2 == 1 && draw() % 16 != 0) {
    const auto rank = [this](const auto& stream) { return (seed_ + stream->id) * 0x9e3779b97f4a7c15u >> 32; };
    chosen = *std::max_element(ready.begin(), ready.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  }
  turn_ = static_cast<size_t>(std::find(streams_.begin(), streams_.end(), chosen) - streams_.begin());
  return chosen;
}

bool Engine::any_meetings() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& stream) { return !stream->jobs.empty() && stream->jobs.front().kind == Job::Kind::meeting; });
}

bool Engine::any_jobs() const {
  return std::any_of(streams_.begin(), streams_.end(), [](const auto& stream) { return !stream->jobs.empty(); });
}

// With a seed the devices are sometimes slower than the host: only then may work that was enqueued later go first.
void Engine::pause(Lock& lock, uint64_t max_us) {
  if (seed_ == 0 || draw() % 2 == 0) return;
  const std::chrono::microseconds time(draw() % max_us);
  lock.unlock();
  std::this_thread::sleep_for(time);
  lock.lock();
}

void Engine::work() {
  constexpr std::chrono::milliseconds look_again(1);  // how often to check whether a file is gone, or another process has come
  Lock lock(mutex_);
  for (;;) {
    const bool holds = held();
    const std::shared_ptr<Stream> stream = choose(holds);
    if (!stream) {
      const bool asks = (holds && any_jobs()) || any_meetings();
      asks ? static_cast<void>(changed_.wait_for(lock, look_again)) : changed_.wait(lock);
      pause(lock, 400);
      continue;
    }
    Job job = std::move(stream->jobs.front());
    stream->jobs.pop_front();
    cudaError_t error = cudaSuccess;
    if (job.work) {
      working_ = true;
      if (seed_ != 0 && draw() % 8 == 0) pause(lock, 100);
      lock.unlock();
      error = job.work();
      job.work = nullptr;  // destroys what it holds here, outside the lock
      lock.lock();
      working_ = false;
    }
    // If the device was lost meanwhile, the result does not count.
    if (lost_ == cudaSuccess && error != cudaSuccess) lose(error);
    stream->done = std::max(stream->done, job.sequence);
    if (stream->destroyed && stream->jobs.empty()) streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
    changed_.notify_all();
  }
}

}  // namespace heddle::cuda::standin
