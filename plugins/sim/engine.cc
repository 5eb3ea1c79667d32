#include "engine.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <tuple>
#include <utility>

namespace sim {
namespace {

constexpr std::chrono::milliseconds look_again(1);  // until the next check whether a file is gone
constexpr size_t jobs_per_stream = 128;
constexpr const char* lost_text = "the device is lost";

std::mutex engine_mutex;
std::weak_ptr<Engine> engine;

}  // namespace

std::shared_ptr<Engine> Engine::shared(uint64_t seed) {
  const std::lock_guard<std::mutex> lock(engine_mutex);
  std::shared_ptr<Engine> known = engine.lock();
  if (!known) engine = known = std::make_shared<Engine>();
  known->set_seed(seed);
  return known;
}

std::shared_ptr<Engine> Engine::current() {
  const std::lock_guard<std::mutex> lock(engine_mutex);
  return engine.lock();
}

Engine::Engine() {
  worker_ = std::thread([this] { work(); });
  try {
    caller_ = std::thread([this] { call_back(); });
  } catch (...) {  // the system gives no second thread: stop the first one
    stop();
    throw;
  }
}

void Engine::set_seed(uint64_t seed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  seed_ = random_ = seed;
}

Engine::~Engine() {
  stop();
}

void Engine::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  if (worker_.joinable()) worker_.join();
  if (caller_.joinable()) caller_.join();
}

Stream* Engine::add_stream(const Memory& memory, Settings& settings, int32_t stream_class, int32_t priority) {
  auto stream = std::make_unique<Stream>(memory, settings, stream_class, priority);
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t count = streams_.size() + 1;
  callbacks_.reserve(count);
  while (jobs_.size() < jobs_per_stream * count) {
    auto made = std::make_unique<Job>();
    made->launch.reserve();
    Job* const job = jobs_.emplace_back(std::move(made)).get();
    job->next = std::exchange(idle_jobs_, job);
  }
  streams_.push_back(stream.get());  // no later statement may fail
  stream->number_ = ++streams_made_;
  settings.counts.streams.fetch_add(1, std::memory_order_relaxed);
  return stream.release();
}

void Engine::remove(Stream* stream) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !stream->busy_ && (stream->silent_ || !stream->first_job_); });
    streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
    for (const auto& group : groups_)  // one that lacks this stream's part may outlive it
      std::replace(group->streams.begin(), group->streams.end(), stream, static_cast<Stream*>(nullptr));
  }
  stream->settings.counts.streams.fetch_sub(1, std::memory_order_relaxed);
  delete stream;
}

// ---------------------------------------------------------------- enqueueing

void Engine::linger() {
  std::chrono::microseconds time(0);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (seed_ != 0 && draw() % 16 == 0) time = std::chrono::microseconds(draw() % 100);
  }
  if (time.count() > 0) std::this_thread::sleep_for(time);
}

Job* Engine::take_job() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!idle_jobs_) return jobs_.emplace_back(std::make_unique<Job>()).get();
  Job* const job = std::exchange(idle_jobs_, idle_jobs_->next);
  job->awaits_next = false;  // what it last was may have waited in vain
  return job;
}

void Engine::give_back(Job* job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  job->next = std::exchange(idle_jobs_, job);
}

void Engine::add(Stream& stream, Job* job) {
  job->next = nullptr;
  job->ticket = ++tickets_;
  job->label = stream.label;
  job->enqueued = clock_;
  job->takes = 0;
  if (job->kind == Job::Kind::copy || job->launches() || job->kind == Job::Kind::call) {
    job->takes = stream.settings.cost(job->name(), job->launches() ? job->launch.input_bytes() : job->bytes);
    // Durations of all magnitudes up to some 130 us: a long one lets all other work pass.
    if (seed_ != 0 && job->takes == 0) job->takes = draw() % (uint64_t{1} << draw() % 18);
    // All work of one stream in eight is late.
    if (seed_ != 0 && (stream.number_ + seed_) % 8 == 0) job->takes *= 64;
  }
  (stream.first_job_ ? stream.last_job_->next : stream.first_job_) = job;
  stream.last_job_ = job;
  settled_ = resting_ = false;
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
  stream.aborted_ = false;
  stream.failed_label = failure.label;
  if (failure.status == HEDDLE_OK && stream.settings.lost) failure = {HEDDLE_ERROR_DEVICE_LOST, lost_text, UINT64_MAX};
  return failure;
}

bool Engine::wait_until_idle(const Memory& memory) {
  if (Launch::is_here()) return false;  // it would wait for its own kernel
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t last = tickets_;
  const bool inside = std::any_of(streams_.begin(), streams_.end(), [&](const Stream* s) { return &s->memory == &memory && has_half(*s); });
  const auto waits_for_launches = [&](const Stream* s) {
    return &s->memory == &memory && is_half(s->first_job_) && s->first_job_->ticket <= last;
  };
  const auto is_idle = [&](const Stream* stream) {
    return &stream->memory != &memory || (!stream->busy_ && (!stream->first_job_ || stream->first_job_->ticket > last));
  };
  changed_.wait(lock, [&] {
    return (resting_ && std::none_of(streams_.begin(), streams_.end(), waits_for_launches)) ||
           std::all_of(streams_.begin(), streams_.end(), is_idle);
  });
  return inside;
}

heddle_status Engine::query(Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stream.busy_) return HEDDLE_PENDING;
  if (stream.settings.lost) return HEDDLE_ERROR_DEVICE_LOST;
  if (stream.first_job_ || stream.silent_) return HEDDLE_PENDING;
  return stream.failure_.status;
}

void Engine::abort(Stream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stream.deaf_ || (!stream.first_job_ && !stream.busy_ && !stream.silent_)) return;
  stream.aborted_ = true;
  if (std::exchange(stream.silent_, false) && stream.failure_.status == HEDDLE_OK)
    stream.failure_ = {HEDDLE_ERROR_CANCELLED, "aborted while the device worked on it", stream.silent_label_};
  settled_ = false;
  changed_.notify_all();
}

// ---------------------------------------------------------------- the devices' thread

bool Engine::may_begin(const Stream& stream) {
  const Job* const job = stream.first_job_;
  if (!job || stream.busy_ || stream.silent_) return false;
  if (job->kind == Job::Kind::group) return leaves_group(stream) || have_come(*job->group);
  return job->kind != Job::Kind::wait || stream.aborted_ || job->event->reached_ >= job->record;
}

// The end of the stream's next work, by the clock.
uint64_t Engine::end_of(const Stream& stream) const {
  const Job& job = *stream.first_job_;
  uint64_t begin = std::max(stream.time_, job.enqueued);
  if (job.kind == Job::Kind::wait) begin = std::max(begin, job.event->time_);
  if (job.kind != Job::Kind::group || leaves_group(stream)) return begin + job.takes;
  uint64_t takes = 0;
  for (size_t i = 0; i < job.group->jobs.size(); ++i) {
    const Job& part = *job.group->jobs[i];
    begin = std::max({begin, job.group->streams[i]->time_, part.enqueued});
    takes = std::max(takes, part.takes);
  }
  return begin + takes;
}

// `held`: set if streams could continue, but for a file.
Stream* Engine::choose(bool* held) {
  *held = false;
  Stream* first = nullptr;
  std::tuple<uint64_t, int32_t, uint64_t> first_rank;
  for (Stream* stream : streams_) {
    if (!may_begin(*stream)) continue;
    if (!stream->settings.hold.empty() && ::access(stream->settings.hold.c_str(), F_OK) == 0) {
      *held = true;
      continue;
    }
    const uint64_t end = end_of(*stream);
    if (end > horizon_) continue;
    const std::tuple rank(end, -stream->priority, stream->first_job_->ticket);
    if (!first || rank < first_rank) first = stream, first_rank = rank;
  }
  return first;
}

// Lets the host run ahead, so that more is enqueued before any work begins: only then may later work go first.
void Engine::lag(std::unique_lock<std::mutex>& lock) {
  if (seed_ == 0 || closing_) return;
  const std::chrono::microseconds time(draw() % 2 == 0 ? draw() % 600 : 0);
  if (time.count() == 0) return;
  lock.unlock();
  std::this_thread::sleep_for(time);
  lock.lock();
}

void Engine::end(Stream& stream, Job* job) {
  stream.busy_ = false;
  job->arguments = nullptr;
  if (Group* const group = std::exchange(job->group, nullptr); group && --group->left == 0) put_away(group);
  job->next = std::exchange(idle_jobs_, job);
  if (!stream.first_job_ || stream.silent_) changed_.notify_all();  // wakes the waiting threads; then the stream may be deleted
}

void Engine::fall_silent(Stream& stream, const Job& job) {
  stream.silent_ = true;
  stream.silent_label_ = job.label;
  stream.settings.counts.silences.fetch_add(1, std::memory_order_release);
}

void Engine::work_on(Stream& stream, std::unique_lock<std::mutex>& lock) {
  if (stream.first_job_->kind == Job::Kind::group) {
    if (!leaves_group(stream)) return work_on_group(*stream.first_job_->group, lock);
    stream.first_job_->group->broken = true;
  }
  const uint64_t until = end_of(stream);
  Job* const job = std::exchange(stream.first_job_, stream.first_job_->next);
  clock_ = std::max(clock_, until);
  stream.time_ = until;
  stream.busy_ = true;
  if (stream.aborted_ && stream.failure_.status == HEDDLE_OK)
    stream.failure_ = {HEDDLE_ERROR_CANCELLED, "aborted before the device came to it", job->label};
  // Under the lock, under which work is enqueued, too.
  if (job->kind == Job::Kind::record) {
    job->event->reached_ = job->record;
    job->event->time_ = until;
    job->event->failure_ = stream.failure_;
  } else if (job->kind == Job::Kind::wait) {
    if (stream.failure_.status == HEDDLE_OK && job->event->reached_ >= job->record) stream.failure_ = job->event->failure_;
  } else if (job->kind == Job::Kind::notify && stream.settings.cuda_like) {
    callbacks_.emplace_back(&stream, job);
    changed_.notify_all();
    return;
  } else {
    if (job->kind != Job::Kind::notify && stream.failure_.status == HEDDLE_OK) note_span(stream, *job, until - job->takes, until);
    const std::chrono::microseconds pause(seed_ != 0 && draw() % 16 == 0 ? draw() % 120 : 0);
    lock.unlock();
    if (pause.count() > 0) std::this_thread::sleep_for(pause);
    const bool ended = execute(stream, *job);
    lock.lock();
    if (!ended) fall_silent(stream, *job);
    // The thread that was notified may continue before anything else is done.
    if (job->kind == Job::Kind::notify && seed_ != 0 && draw() % 2 == 0) lag(lock);
  }
  end(stream, job);
}

void Engine::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    const auto due = fail_late_groups();
    bool held = false;
    Stream* const stream = choose(&held);
    if (stream) {
      resting_ = false;
      work_on(*stream, lock);
      continue;
    }
    if (closing_) return;
    if (callbacks_.empty() && !calling_ && !std::exchange(resting_, true)) changed_.notify_all();
    if (!held && callbacks_.empty() && !calling_ && !std::exchange(settled_, true)) changed_.notify_all();
    if (held)
      changed_.wait_for(lock, look_again);
    else if (due != no_time)
      changed_.wait_until(lock, due);
    else
      changed_.wait(lock);
    lag(lock);
  }
}

// The thread for callbacks that only delay their own stream.
void Engine::call_back() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || !callbacks_.empty(); });
    if (callbacks_.empty()) return;
    Stream& stream = *callbacks_.front().first;
    Job* const job = callbacks_.front().second;
    callbacks_.erase(callbacks_.begin());
    calling_ = &stream;
    lock.unlock();
    execute(stream, *job);
    lock.lock();
    calling_ = nullptr;
    settled_ = false;
    end(stream, job);
    changed_.notify_all();
  }
}

heddle_status Engine::move(const Stream& stream, const Job& job, std::string* why) {
  const Memory& memory = stream.memory;
  void* const to = job.copy_kind == HEDDLE_COPY_DEVICE_TO_HOST ? job.destination : memory.shadow(job.destination, job.bytes);
  const void* const from = job.copy_kind == HEDDLE_COPY_HOST_TO_DEVICE    ? job.source
                           : job.copy_kind == HEDDLE_COPY_VALUE_TO_DEVICE ? job.value
                                                                          : job.source_memory->shadow(job.source, job.bytes);
  if (!to || !from) return *why = "a copy touches memory that is not the device's", HEDDLE_ERROR_DEVICE;
  const auto is_word = [&](const void* at) {
    return job.bytes == sizeof(uint64_t) && reinterpret_cast<uintptr_t>(at) % sizeof(uint64_t) == 0;
  };
  if (is_word(from) && is_word(to))  // the host may set or read it meanwhile
    __atomic_store_n(static_cast<uint64_t*>(to), __atomic_load_n(static_cast<const uint64_t*>(from), __ATOMIC_RELAXED), __ATOMIC_RELEASE);
  else
    std::memmove(to, from, job.bytes);
  return HEDDLE_OK;
}

// Returns what a fault does to a job in place of its work.
heddle_status Engine::strike(Stream& stream, const Job& job, std::string* why) {
  const bool kernel = job.kind != Job::Kind::copy;
  Settings& settings = stream.settings;
  const Faults::Site site = {job.launches() ? job.launch.operator_name() : nullptr, job.label};
  if (settings.lost) return *why = lost_text, HEDDLE_ERROR_DEVICE_LOST;
  if (settings.faults.strikes(Faults::Kind::lost, site)) {
    settings.lost = true;
    return *why = "the device was lost, as it was told to be", HEDDLE_ERROR_DEVICE_LOST;
  }
  if (settings.faults.strikes(Faults::Kind::deaf, site)) return stream.deaf_ = true, HEDDLE_PENDING;
  if (settings.faults.strikes(Faults::Kind::silent, site)) return HEDDLE_PENDING;
  if (settings.faults.strikes(kernel ? Faults::Kind::late : Faults::Kind::copy, site))
    return *why = "an address was out of range, as it was told to be", HEDDLE_ERROR_DEVICE;
  return HEDDLE_OK;
}

heddle_status Engine::perform(Stream& stream, Job& job, std::string* why) {
  if (const heddle_status struck = strike(stream, job, why); struck != HEDDLE_OK) return struck;
  if (job.kind == Job::Kind::call) {
    const heddle_status status = job.call(job.arguments.get(), stream.memory, why);
    return status == HEDDLE_PENDING ? (*why = "is pending, and waits for no subnet", HEDDLE_ERROR_INTERNAL) : status;
  }
  return job.kind == Job::Kind::copy ? move(stream, job, why) : job.launch.run(stream.settings.wrong, why);
}

// While the stream is busy, this thread owns its failure. Work after a failure is skipped. False: the job never ends.
bool Engine::execute(Stream& stream, Job& job) {
  Failure& failure = stream.failure_;
  Settings& settings = stream.settings;
  if (job.kind == Job::Kind::notify) {
    if (settings.cuda_like && (settings.lost || failure.status != HEDDLE_OK)) return true;
    settings.counts.callbacks.fetch_add(1, std::memory_order_relaxed);
    job.callback(job.user, failure.status, failure.status == HEDDLE_OK ? nullptr : failure.text.data(), failure.text.size());
    return true;
  }
  if (failure.status != HEDDLE_OK) return true;
  std::string why;
  const heddle_status status = perform(stream, job, &why);
  return settle(stream, job, status, std::move(why));
}

// Notes how a job has ended. False: it never ends.
bool Engine::settle(Stream& stream, const Job& job, heddle_status status, std::string why) {
  Settings& settings = stream.settings;
  if (status == HEDDLE_PENDING) return false;
  if (status == HEDDLE_OK) return true;
  if (settings.cuda_like) {
    settings.lost = true;
    status = HEDDLE_ERROR_DEVICE_LOST;
  }
  // A failure that follows from the loss of the device is not attributed to a step.
  const bool follows = status == HEDDLE_ERROR_DEVICE_LOST && why == lost_text;
  stream.failure_ = {status, std::move(why), follows ? UINT64_MAX : job.label};
  return true;
}

}  // namespace sim
