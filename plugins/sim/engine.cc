#include "engine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace sim {
namespace {

constexpr std::chrono::milliseconds look_again(1);  // whether a file is gone
constexpr size_t jobs_per_stream = 64;

}  // namespace

std::shared_ptr<Engine> Engine::shared(uint64_t seed) {
  static std::mutex mutex;
  static std::weak_ptr<Engine> known;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Engine> engine = known.lock();
  if (!engine) known = engine = std::make_shared<Engine>();
  engine->set_seed(seed);
  return engine;
}

Engine::Engine() : worker_([this] { work(); }) {}

void Engine::set_seed(uint64_t seed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  seed_ = random_ = seed;
}

Engine::~Engine() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  worker_.join();
}

Stream* Engine::add_stream(const Memory& memory, Manners& manners) {
  auto stream = std::make_unique<Stream>(memory, manners);
  const std::lock_guard<std::mutex> lock(mutex_);
  able_.reserve(streams_.size() + 1);
  streams_.push_back(stream.get());
  while (jobs_.size() < jobs_per_stream * streams_.size()) {
    Job* const job = jobs_.emplace_back(std::make_unique<Job>()).get();
    job->launch.reserve();
    job->next = std::exchange(idle_jobs_, job);
  }
  return stream.release();
}

void Engine::remove(Stream* stream) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return stream->silent_ || (!stream->first_job_ && !stream->busy_); });
    streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
  }
  delete stream;
}

// ---------------------------------------------------------------- enqueueing

Job* Engine::take_job() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!idle_jobs_) return jobs_.emplace_back(std::make_unique<Job>()).get();
  return std::exchange(idle_jobs_, idle_jobs_->next);
}

void Engine::give_back(Job* job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  job->next = std::exchange(idle_jobs_, job);
}

void Engine::add(Stream& stream, Job* job) {
  job->next = nullptr;
  job->ticket = ++tickets_;
  job->label = stream.label_;
  (stream.first_job_ ? stream.last_job_->next : stream.first_job_) = job;
  stream.last_job_ = job;
  changed_.notify_all();
}

void Engine::enqueue(Stream& stream, Job* job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  add(stream, job);
}

void Engine::record(Stream& stream, Event& event) {
  Job* const job = take_job();
  job->kind = Job::Kind::record;
  job->event = &event;
  const std::lock_guard<std::mutex> lock(mutex_);
  job->record = ++event.expected_;
  add(stream, job);
}

void Engine::wait(Stream& stream, Event& event) {
  Job* const job = take_job();
  job->kind = Job::Kind::wait;
  job->event = &event;
  const std::lock_guard<std::mutex> lock(mutex_);
  job->record = event.expected_;
  add(stream, job);
}

Failure Engine::synchronize(Stream& stream) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !stream.first_job_ && !stream.busy_ && !stream.silent_; });
  Failure failure = std::exchange(stream.failure_, {});
  stream.failed_label_ = failure.label;
  return failure;
}

// ---------------------------------------------------------------- the device's thread

bool Engine::may_begin(const Stream& stream) const {
  const Job* const job = stream.first_job_;
  return job && !stream.silent_ && (job->kind != Job::Kind::wait || job->event->reached_ >= job->record);
}

// `held`: streams could go on, but for a file.
Stream* Engine::choose(bool* held) {
  able_.clear();
  *held = false;
  for (Stream* stream : streams_) {
    if (!may_begin(*stream)) continue;
    if (!stream->manners.hold.empty() && ::access(stream->manners.hold.c_str(), F_OK) == 0)
      *held = true;
    else
      able_.push_back(stream);
  }
  if (able_.empty()) return nullptr;
  if (seed_ != 0) return able_[draw() % able_.size()];
  return *std::min_element(able_.begin(), able_.end(),
                           [](const Stream* a, const Stream* b) { return a->first_job_->ticket < b->first_job_->ticket; });
}

std::chrono::microseconds Engine::pause() {
  const uint64_t number = seed_ == 0 ? 1 : draw();
  return std::chrono::microseconds(number % 4 == 0 ? number / 4 % 120 : 0);
}

// Behind the host, so that more is enqueued before anything begins: only then may what comes later go first.
void Engine::lag(std::unique_lock<std::mutex>& lock) {
  if (seed_ == 0 || closing_) return;
  const std::chrono::microseconds time(draw() % 2 == 0 ? draw() % 600 : 0);
  if (time.count() == 0) return;
  lock.unlock();
  std::this_thread::sleep_for(time);
  lock.lock();
}

void Engine::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    bool held = false;
    Stream* const stream = choose(&held);
    if (!stream) {
      if (closing_) return;
      held ? static_cast<void>(changed_.wait_for(lock, look_again)) : changed_.wait(lock);
      lag(lock);
      continue;
    }
    Job* const job = std::exchange(stream->first_job_, stream->first_job_->next);
    stream->busy_ = true;
    bool ended = true;
    // Under the lock, which those who enqueue take too.
    if (job->kind == Job::Kind::record) {
      job->event->reached_ = job->record;
      job->event->failure_ = stream->failure_;
    } else if (job->kind == Job::Kind::wait) {
      if (stream->failure_.status == HEDDLE_OK) stream->failure_ = job->event->failure_;
    } else {
      const std::chrono::microseconds time = pause();
      lock.unlock();
      if (time.count() > 0) std::this_thread::sleep_for(time);
      ended = execute(*stream, *job);
      lock.lock();
    }
    stream->busy_ = false;
    stream->silent_ = !ended;
    job->next = std::exchange(idle_jobs_, job);
    if (!stream->first_job_ || !ended) changed_.notify_all();  // behind which it may be gone
  }
}

heddle_status Engine::move(const Stream& stream, const Job& job, std::string* why) {
  const Memory& memory = stream.memory;
  void* const to =
      job.value == HEDDLE_COPY_DEVICE_TO_HOST && job.kind == Job::Kind::copy ? job.destination : memory.shadow(job.destination, job.bytes);
  if (job.kind == Job::Kind::fill) {
    if (!to) return *why = "a fill touches memory that is not the device's", HEDDLE_ERROR_DEVICE;
    std::memset(to, job.value, job.bytes);
    return HEDDLE_OK;
  }
  const void* const from = job.value == HEDDLE_COPY_HOST_TO_DEVICE ? job.source : memory.shadow(job.source, job.bytes);
  if (!to || !from) return *why = "a copy touches memory that is not the device's", HEDDLE_ERROR_DEVICE;
  std::memmove(to, from, job.bytes);
  return HEDDLE_OK;
}

constexpr const char* lost = "the device is lost, as it was told to be";

heddle_status Engine::perform(Stream& stream, Job& job, std::string* why) {
  const bool kernel = job.kind == Job::Kind::launch;
  Manners& manners = stream.manners;
  const Faults::Site site = {kernel ? job.launch.operator_name() : nullptr, job.label};
  if (manners.faults.strikes(Faults::Kind::lost, site)) manners.lost = true;
  if (manners.lost) return *why = lost, HEDDLE_ERROR_DEVICE;
  if (manners.faults.strikes(Faults::Kind::silent, site)) return HEDDLE_PENDING;
  if (manners.faults.strikes(kernel ? Faults::Kind::late : Faults::Kind::copy, site))
    return *why = "an address was out of range, as it was told to be", HEDDLE_ERROR_DEVICE;
  return kernel ? job.launch.run(manners.wrong, why) : move(stream, job, why);
}

// The stream's failure is this thread's while it is busy. What is behind a failure is left out. False: the job never ends.
bool Engine::execute(Stream& stream, Job& job) {
  Failure& failure = stream.failure_;
  if (job.kind == Job::Kind::notify) {
    job.callback(job.user, failure.status, failure.status == HEDDLE_OK ? nullptr : failure.text.data(), failure.text.size());
    return true;
  }
  if (failure.status != HEDDLE_OK) return true;
  std::string why;
  const heddle_status status = perform(stream, job, &why);
  if (status == HEDDLE_PENDING) return false;
  if (status != HEDDLE_OK) failure = {status, std::move(why), job.label};
  return true;
}

}  // namespace sim
