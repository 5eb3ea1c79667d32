#include "device/communicator_turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/checksum.h"
#include "base/device_name.h"
#include "base/exceptions.h"
#include "base/text/text.h"
#include "device/collective_comparison.h"
#include "device/communicator_group.h"

namespace heddle {

// ---------------------------------------------------------------- calls that may wait for peers

namespace {

using Group = CommunicatorGroup;

// Calls `work(call)` on a thread of its own. If the run that waits for the call has ended, the object that it makes is aborted and
// destroyed.
template <class Work>
Result<std::shared_ptr<PeerCall>> start(const std::shared_ptr<Group>& group, const Work& work) HEDDLE_REQUIRES(group->mutex) {
  const auto call = std::make_shared<PeerCall>();
  const auto run = [group, call, work = std::make_shared<const Work>(work)]() mutable {
    Status failure;
    try {
      failure = (*work)(*call);
    } catch (...) {
      failure = status_of_exception();
    }
    work = nullptr;  // the thread that waits may destroy what it refers to
    std::shared_ptr<const Resource> late;
    {
      const MutexLock lock(group->mutex);
      call->over = true;
      call->failure = std::move(failure);
      if (call->cancelled) late.swap(call->made);
      group->call = nullptr;
      group->changed.notify_all();
    }
    if (late) late->abort("the run that needed it has ended");
  };
  try {
    std::thread(run).detach();
  } catch (const std::system_error& error) {
    return Status(Code::out_of_memory, fmt::format("no thread could be made for {}: {}", shown_communicator(group->name), error.what()),
                  "let fewer threads run, or raise the limit");
  }
  group->call = call;
  return call;
}

// Waits until `over()`, which is called under the group's lock, or until the run has to end.
template <class Over>
Status wait(Group& group, MutexLock& lock, const Interruption& until, const Over& over) HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
  constexpr std::chrono::milliseconds look_again(2);
  while (!over()) {
    if (group.changed.wait_for(group.mutex, look_again)) continue;
    lock.unlock();
    Status ended = until.status();
    lock.lock();
    if (!ended.ok() && !over()) return ended;
  }
  return {};
}

Status aborted(const Group& group) {
  return {Code::cancelled, fmt::format("{} was aborted, since the run ends", shown_communicator(group.name))};
}

// Waits for a call, or until its run has to end. `doing`: what it does, for the error.
Status finish(Group& group, MutexLock& lock, PeerCall& call, const Interruption& until,
              std::string_view doing) HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
  Status ended = wait(group, lock, until, [&]() HEDDLE_NO_THREAD_SAFETY_ANALYSIS { return call.over || group.aborted; });
  // A plugin that heeds the deadline may fail before the wait has seen it.
  if (call.over && !call.failure.ok() && ended.ok()) ended = until.status();
  if (call.over && (call.failure.ok() || ended.ok())) return std::move(call.failure);
  call.cancelled = true;
  if (ended.ok()) ended = Status(Code::cancelled, "the run was cancelled");
  return std::move(ended).during(fmt::format("while {} {}", shown_communicator(group.name), doing));
}

}  // namespace

// ---------------------------------------------------------------- turns

struct CommunicatorTurns::Turn {
  explicit Turn(const PlanCommunicator& of)
      : name(of.name), at(of.at), devices(of.devices), collectives(of.collectives), net(of.net), hash(of.hash) {}
  // Returns what ranks must have alike, with the names of collectives.
  std::string compared() const { return text_to_compare(collectives, net ? *net : std::string()); }

  // Whether the session says the same of both: then they have the same ranks.
  bool has_ranks_of(const Turn& other) const {
    const CommunicatorOptions &a = group->options, &b = other.group->options;
    return a.rank == b.rank && a.size == b.size && a.rendezvous == b.rendezvous;
  }
  const std::string name;
  const std::vector<uint32_t> at;          // as PlanCommunicator::at
  const std::vector<std::string> devices;  // as PlanCommunicator::devices
  const std::string collectives;           // as PlanCommunicator::collectives
  const std::shared_ptr<const std::string> net;
  uint64_t hash;                 // of what ranks must have alike: find_hashes()
  std::shared_ptr<Group> group;  // null before the first run; set by the thread that runs, under the turns' mutex_
  FairSharedMutex::Hold hold;
  bool entered = false;  // set by the thread that runs, under the turns' mutex_
};

namespace {

template <class Turn>
std::vector<std::unique_ptr<Turn>> turns_with(const std::vector<PlanCommunicator>& used) {
  std::vector<std::unique_ptr<Turn>> turns;
  for (const PlanCommunicator& communicator : used) turns.push_back(std::make_unique<Turn>(communicator));
  return turns;
}

// A device that the session declares and the net leaves out would be waited for, or its part left out of a sum.
Status check_devices(const std::string& name, const std::vector<std::string>& used, std::vector<std::string> declared) {
  std::sort(declared.begin(), declared.end(), [](const std::string& a, const std::string& b) { return device_order(a) < device_order(b); });
  if (used == declared || (used.empty() && declared.size() == 1)) return {};
  return {Code::invalid_argument,
          fmt::format("the net has its collectives of {} on {}, and the session declares {}", shown_communicator(name),
                      used.empty() ? std::string("the host") : fmt::format("{}", fmt::join(used, " and ")), fmt::join(declared, " and ")),
          "declare the devices that the net uses, or give each of those declared its collectives"};
}

}  // namespace

CommunicatorTurns::CommunicatorTurns(std::shared_ptr<Communicators> communicators, const std::vector<PlanCommunicator>& used)
    : communicators_(std::move(communicators)), turns_(turns_with<Turn>(used)) {}
CommunicatorTurns::~CommunicatorTurns() = default;

Status CommunicatorTurns::enter(const Interruption& until) {
  until_ = until;
  for (const auto& turn : turns_) {
    if (!turn->group) {
      if (!communicators_)
        return {Code::missing_resource, fmt::format("there is no session that has {}", shown_communicator(turn->name)), "open one"};
      HEDDLE_TRY(auto group, communicators_->find(turn->name, turn->devices));
      HEDDLE_CHECK(check_devices(turn->name, turn->devices, group->options.devices));
      const MutexLock lock(mutex_);
      turn->group = std::move(group);
    }
    const FairSharedMutex::Outcome outcome = turn->hold.enter(turn->group->turns, FairSharedMutex::Use::alone, until);
    if (outcome != FairSharedMutex::Outcome::entered) return turn_status(outcome, shown_communicator(turn->name));
    const MutexLock lock(mutex_);
    turn->entered = true;
  }
  Status lost;
  for (const auto& turn : turns_) {
    Status broken = turn->group->poll();
    turn->group->drop(!broken.ok());
    if (lost.ok() && communicators_->fails_if_broken()) lost = std::move(broken);
  }
  HEDDLE_CHECK(std::move(lost));
  if (!knows_hashes_) find_hashes();
  return {};
}

// Ranks must also agree on the order between collectives of different communicators, as far as they share these. Without memory for all
// hashes none is set, and the next run finds them.
void CommunicatorTurns::find_hashes() {
  std::vector<uint64_t> hashes;
  for (const auto& turn : turns_) {
    std::map<uint32_t, std::string> order;
    for (const auto& other : turns_)
      if (other->has_ranks_of(*turn))
        for (const uint32_t at : other->at) order[at] = other->name;
    std::string text = without_names(turn->compared());
    for (const auto& [at, name] : order) text += ' ' + quoted(name);
    hashes.push_back(checksum(std::as_bytes(std::span(text))));
  }
  for (size_t i = 0; i < hashes.size(); ++i) turns_[i]->hash = hashes[i];
  knows_hashes_ = true;
}

Result<std::shared_ptr<const Resource>> CommunicatorTurns::object(const std::shared_ptr<const RegistrySnapshot>& registry,
                                                                  const CommunicatorNeed& need) {
  const std::string& name = need.need->communicator;
  const auto turn = std::find_if(turns_.begin(), turns_.end(), [&](const auto& t) { return t->name == name; });
  if (turn == turns_.end())
    return Status(Code::missing_resource, fmt::format("the net does not say that it uses {}", shown_communicator(name)),
                  "name it in the attribute \"communicator\" of an operator with HEDDLE_TRAIT_COLLECTIVE");
  const std::shared_ptr<Group> group = (*turn)->group;
  const auto known = [&]() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
    return std::find_if(group->objects.begin(), group->objects.end(), [&](const Group::Object& o) { return o.key == need.key; });
  };
  MutexLock lock(group->mutex);
  if (const auto found = known(); found != group->objects.end()) return found->made;
  // One call at a time: for another step of this run, or still for a run that has ended.
  HEDDLE_CHECK(wait(*group, lock, until_, [&]() HEDDLE_NO_THREAD_SAFETY_ANALYSIS {
                 return !group->call;
               }).during(fmt::format("while another object of {} was being made", shown_communicator(name))));
  if (const auto found = known(); found != group->objects.end()) return found->made;
  if (group->aborted) return aborted(*group);
  const uint32_t attempt = group->attempt + (group->anew ? 1 : 0);
  group->objects.reserve(group->objects.size() + 1);
  Group::Object made{need.key, nullptr};  // once it is made nothing may throw
  HEDDLE_TRY(const auto call, start(group,
                                    [group, resources = communicators_->resources(), registry, need, attempt,
                                     deadline = until_.deadline_ticks()](PeerCall& makes) -> Status {
                                      CommunicatorRequest request;
                                      request.rank = group->options.rank;
                                      request.size = group->options.size;
                                      request.attempt = attempt;
                                      for (const std::string& device : group->options.devices) request.members.push_back(device.c_str());
                                      request.rendezvous = group->options.rendezvous.c_str();
                                      request.timeout_ns = group->options.timeout_ns;
                                      request.deadline_ticks = deadline;
                                      request.cancelled = &makes.cancelled;
                                      {
                                        const MutexLock of_group(group->mutex);
                                        for (const Group::Object& object : group->objects) request.made.push_back(object.made);
                                      }
                                      HEDDLE_TRY(makes.made, resources->make_communicator(registry, *need.need, need.place, request));
                                      return {};
                                    }));
  group->attempt = attempt;
  group->anew = false;
  Status status = finish(*group, lock, *call, until_, "was being made");
  if (!status.ok()) {
    group->anew = true;
    return status;
  }
  made.made = std::move(call->made);
  if (group->aborted) {  // after it was made, and before it was one of those that abort() ends
    lock.unlock();
    made.made->abort("the run that needed it ends");
    return aborted(*group);
  }
  group->objects.push_back(made);
  return std::move(made.made);
}

// Ranks that run other collectives would wait for each other for ever. Each object is asked once for each sequence of collectives.
Status CommunicatorTurns::compare() {
  for (const auto& turn : turns_) {
    const std::shared_ptr<Group> group = turn->group;
    const auto size = static_cast<size_t>(group->options.size);
    MutexLock lock(group->mutex);
    for (size_t i = 0; size > 1 && i < group->objects.size(); ++i) {
      const std::shared_ptr<const Resource> object = group->objects[i].made;
      if (group->objects[i].compared == turn->hash) continue;
      HEDDLE_CHECK(wait(*group, lock, until_, [&]() HEDDLE_NO_THREAD_SAFETY_ANALYSIS { return !group->call; }));
      std::string text = turn->compared();
      HEDDLE_TRY(
          const auto call,
          start(group,
                [object, hash = turn->hash, text = std::move(text), size, deadline = until_.deadline_ticks()](PeerCall& asks) -> Status {
                  HEDDLE_TRY(asks.hashes, object->exchange(hash, size, deadline));
                  const bool alike = std::all_of(asks.hashes.begin(), asks.hashes.end(), [&](uint64_t h) { return h == hash; });
                  if (alike) return {};
                  HEDDLE_TRY(asks.texts, exchange_texts(*object, text, size, deadline));
                  return {};
                }));
      HEDDLE_CHECK(finish(*group, lock, *call, until_, "compared the collectives of its ranks"));
      for (size_t rank = 0; rank < call->hashes.size(); ++rank)
        if (call->hashes[rank] != turn->hash)
          return {Code::invalid_argument,
                  fmt::format("{}: rank {} runs {} than this one, which is rank {}: {}", shown_communicator(turn->name), rank,
                              differ_in_nets(turn->compared(), call->texts[rank]) ? "another net" : "other collectives",
                              group->options.rank, text_difference(turn->compared(), call->texts[rank])),
                  "run the same net on all ranks; PlanInfo::collectives lists what each one runs"};
      group->objects[i].compared = turn->hash;
    }
  }
  return {};
}

bool CommunicatorTurns::has_ranks() const {
  return std::any_of(turns_.begin(), turns_.end(), [](const auto& turn) { return turn->group && turn->group->options.size > 1; });
}

// Ranks exchange a number, which is no hash of collectives that they compare. The exchange ends alike on all ranks, at the deadline of a
// run, the time-out or an abort at the latest: a run that was cancelled meanwhile updates its variables if the exchange was completed.
Status CommunicatorTurns::agree() {
  for (const auto& turn : turns_) {
    const auto size = static_cast<size_t>(turn->group->options.size);
    std::shared_ptr<const Resource> object;
    {
      const MutexLock of_group(turn->group->mutex);
      if (size > 1 && !turn->group->objects.empty()) object = turn->group->objects[0].made;
    }
    if (!object) continue;
    const uint64_t mine = ~turn->hash;
    const Result<std::vector<uint64_t>> all = object->exchange(mine, size, until_.deadline_ticks());
    HEDDLE_CHECK(
        Status(all.status()).during(fmt::format("while the ranks of {} agreed to update their variables", shown_communicator(turn->name))));
    if (std::any_of(all->begin(), all->end(), [&](uint64_t other) { return other != mine; }))
      return {Code::invalid_argument,
              fmt::format("the ranks of {} do not update their variables at the same place", shown_communicator(turn->name)),
              "run the same net on all ranks"};
  }
  return {};
}

// Returns the objects of all communicators: plugins are called without a lock.
std::vector<std::shared_ptr<const Resource>> CommunicatorTurns::objects() const {
  std::vector<std::shared_ptr<const Resource>> all;
  for (const auto& turn : turns_) {
    if (!turn->entered) continue;
    const MutexLock of_group(turn->group->mutex);
    for (const Group::Object& object : turn->group->objects) all.push_back(object.made);
  }
  return all;
}

// An object that is marked as aborted is aborted: a call that comes when the run is over already, and has left, does neither.
void CommunicatorTurns::abort(const std::string& why) noexcept {
  std::vector<std::shared_ptr<const Resource>> all;
  const auto mark = [&] {
    const MutexLock lock(mutex_);
    all = objects();
    for (const auto& turn : turns_) {
      if (!turn->entered) continue;
      const MutexLock of_group(turn->group->mutex);
      turn->group->aborted = true;
      turn->group->changed.notify_all();
    }
  };
  while (!without_exceptions(mark)) std::this_thread::yield();
  for (const auto& object : all) object->abort(why);
}

Status CommunicatorTurns::poll() const {
  for (const auto& turn : turns_) {
    std::shared_ptr<Group> group;
    {
      const MutexLock lock(mutex_);
      if (!turn->entered) continue;
      group = turn->group;
    }
    HEDDLE_CHECK(group->poll());
  }
  return {};
}

void CommunicatorTurns::wake() noexcept {
  const MutexLock lock(mutex_);
  for (const auto& turn : turns_)
    if (turn->group) turn->group->turns.wake();
}

void CommunicatorTurns::leave() noexcept {
  for (const auto& turn : turns_) {
    {
      const MutexLock lock(mutex_);
      if (!std::exchange(turn->entered, false)) continue;  // objects are another run's
    }
    turn->group->drop(false);
    turn->hold.leave();
  }
}

}  // namespace heddle
