// Groups of launches on the simulated devices: they begin when all streams have come to theirs. As with a vendor's library, a group that
// lacks a member, that one device has in another order, or whose launches wait for an allocation between them, never begins; after some
// time the streams that wait in it fail, and name what they have waited for.
#include <algorithm>
#include <string>
#include <utility>

#include "engine.h"

namespace sim {

Group* Engine::take_group() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Group* const group =
      idle_groups_ ? std::exchange(idle_groups_, idle_groups_->next) : groups_.emplace_back(std::make_unique<Group>()).get();
  group->left = 1;
  ++groups_in_use_;
  return group;
}

void Engine::put_away(Group* group) {
  group->streams.clear();
  group->jobs.clear();
  group->launched = group->broken = false;
  group->next = std::exchange(idle_groups_, group);
  --groups_in_use_;
}

void Engine::enqueue(Group& group, Stream& stream, Job* job, bool last) {
  const std::lock_guard<std::mutex> lock(mutex_);
  group.streams.push_back(&stream);
  group.jobs.push_back(job);
  if (job) {
    job->group = &group;
    ++group.left;
    add(stream, job);
    if (!job->awaits_next) change_places(stream);
  }
  if (!last) return;
  group.launched = true;
  settled_ = resting_ = false;
  changed_.notify_all();
  if (--group.left == 0) put_away(&group);
}

// Lets the last job of the stream and the one that awaits it, if there is one, change places.
void Engine::change_places(Stream& stream) {
  const Job* awaiting = stream.first_job_;
  while (awaiting && !awaiting->awaits_next) awaiting = awaiting->next;
  if (!awaiting) return;
  std::vector<Job*> jobs;
  for (Job* job = stream.first_job_; job; job = job->next) jobs.push_back(job);
  const auto place = std::find(jobs.begin(), jobs.end(), awaiting);
  (*place)->awaits_next = false;
  std::swap(*place, jobs.back());
  for (size_t i = 0; i < jobs.size(); ++i) jobs[i]->next = i + 1 < jobs.size() ? jobs[i + 1] : nullptr;
  stream.first_job_ = jobs.front();
  stream.last_job_ = jobs.back();
}

// ---------------------------------------------------------------- the devices' thread

// True if the stream skips its part of a group: the other streams are left to wait, as by a vendor's library.
bool Engine::leaves_group(const Stream& stream) {
  return stream.aborted_ || stream.failure_.status != HEDDLE_OK;
}

bool Engine::have_come(const Group& group) {
  if (!group.launched || group.broken) return false;
  for (size_t i = 0; i < group.jobs.size(); ++i) {
    const Job* const job = group.jobs[i];
    if (!job || !group.streams[i]) return false;
    const Stream& stream = *group.streams[i];
    if (job->awaits_next || stream.first_job_ != job || stream.busy_ || stream.silent_ || leaves_group(stream)) return false;
  }
  return true;
}

// True for a part of a group whose others are being launched.
bool Engine::is_half(const Job* job) {
  return job && job->kind == Job::Kind::group && !job->group->launched && !job->group->broken;
}
bool Engine::has_half(const Stream& stream) {
  const Job* job = stream.first_job_;
  while (job && !is_half(job)) job = job->next;
  return job;
}

// Says which parts of a group have not come, where `of` waits.
std::string Engine::missing_in(const Group& group, const Stream& of) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (size_t i = 0; i < group.streams.size(); ++i) {
    if (!group.streams[i]) continue;
    const Stream& stream = *group.streams[i];
    if (&stream == &of) continue;
    const std::string device = "device " + std::to_string(stream.settings.device);
    const Job* const first = stream.first_job_;
    if (!group.jobs[i])
      add("that of " + device + " was never launched");
    else if (stream.silent_)
      add(device + " works on something that does not end");
    else if (leaves_group(stream))
      add(device + " has failed");
    else if (group.jobs[i]->awaits_next)
      add("that of " + device + " was to come after the next one");
    else if (first && first != group.jobs[i])
      add(device + " is at " + (first->kind == Job::Kind::wait ? "a wait for an event" : first->name()) + " of step " +
          std::to_string(first->label) + " instead");
  }
  if (!group.launched) add("not all were launched while memory was allocated");
  if (of.first_job_->awaits_next) add("its own was to come after the next one");
  return text.empty() ? "a part has left" : text;
}

// Fails the streams that have waited too long in a group. Returns when to look again.
Engine::Time Engine::fail_late_groups() {
  Time due = no_time;
  if (groups_in_use_ == 0 || horizon_ != UINT64_MAX) return due;
  std::vector<std::pair<Stream*, std::string>> late;  // none of them has failed before all that are late were found
  for (Stream* const stream : streams_) {
    const Job* const job = stream->first_job_;
    if (!job || job->kind != Job::Kind::group || stream->busy_ || stream->silent_ || may_begin(*stream)) continue;
    const Time now = std::chrono::steady_clock::now();
    if (std::exchange(stream->waiting_ticket_, job->ticket) != job->ticket) stream->waiting_since_ = now;
    const uint64_t allowed = stream->settings.group_timeout_ms;
    const Time until = stream->waiting_since_ + std::chrono::milliseconds(allowed);
    if (now < until)
      due = std::min(due, until);
    else
      late.emplace_back(stream, "its group has waited " + std::to_string(allowed) + " ms: " + missing_in(*job->group, *stream));
  }
  for (auto& [stream, why] : late) settle(*stream, *stream->first_job_, HEDDLE_ERROR_DEVICE, std::move(why));
  return due;
}

void Engine::work_on_group(Group& group, std::unique_lock<std::mutex>& lock) {
  const uint64_t until = end_of(*group.streams[0]);
  clock_ = std::max(clock_, until);
  for (size_t i = 0; i < group.jobs.size(); ++i) {
    Stream& stream = *group.streams[i];
    stream.first_job_ = group.jobs[i]->next;
    note_span(stream, *group.jobs[i], until - group.jobs[i]->takes, until);
    stream.time_ = until;
    stream.busy_ = true;
  }
  lock.unlock();
  execute(group);
  lock.lock();
  for (size_t i = 0; i < group.jobs.size(); ++i)
    if (!group.ended[i]) fall_silent(*group.streams[i], *group.jobs[i]);
  for (size_t i = group.jobs.size(); i-- > 0;) end(*group.streams[i], group.jobs[i]);  // the last one puts the group away
}

// Finds for each part whether it ends. Where a device fails, the parts on the others never do.
void Engine::execute(Group& group) {
  const size_t count = group.jobs.size();
  group.ended.assign(count, 0);
  group.launches.clear();
  std::string why;
  bool whole = true;
  for (size_t i = 0; i < count; ++i) {
    group.launches.push_back(&group.jobs[i]->launch);
    const heddle_status struck = strike(*group.streams[i], *group.jobs[i], &why);
    if (struck == HEDDLE_OK) continue;
    whole = false;
    group.ended[i] = settle(*group.streams[i], *group.jobs[i], struck, why) ? 1 : 0;
  }
  if (!whole) return;
  const heddle_status status = Launch::run_group(group.launches, group.contexts, group.streams[0]->settings.wrong, &why);
  for (size_t i = 0; i < count; ++i) group.ended[i] = settle(*group.streams[i], *group.jobs[i], status, why) ? 1 : 0;
}

}  // namespace sim
