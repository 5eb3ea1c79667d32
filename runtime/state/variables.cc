#include "state/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/exceptions.h"
#include "base/text/limit_names.h"
#include "base/text/text.h"
#include "base/threads/mutex.h"
#include "net/initializer.h"
#include "net/lasting_blob.h"

namespace heddle {

namespace {

constexpr std::chrono::milliseconds look_again(5);  // how often a wait for a copy looks at the deadline

// A variable that several nets have.
struct Shared {
  const Net* net = nullptr;  // the first that has its content or initializer, or the first that has it at all
  const Variable* variable = nullptr;
};

Status disagree(Code code, const Net& net, const Variable& variable, const Shared& other, const std::string& what) {
  return {code,
          fmt::format("variable {} is {} in net {}, and another in net {}", quoted(variable.name), what, quoted(net.name),
                      quoted(other.net->name)),
          "give it another name in one of them"};
}

std::string type_text(const DeclaredType& type) {
  return fmt::format("{}{}", to_string(type.dtype), type.fixed_shape().value_or(Shape()).text());
}

bool says_nothing(const Variable& variable) {
  return !variable.initial.blob && variable.initializer.empty() && variable.replica_of.empty();
}

void copy_bytes(const Blob& of, const void* from, std::byte* to) {
  if (of.bytes > 0) std::memcpy(to, from, static_cast<size_t>(of.bytes));
}

void fill_by_rule(const std::string& initializer, const Blob& blob, const std::string& name, uint64_t seed, std::byte* data) {
  const Result<Initializer> rule = Initializer::parse(initializer);  // checked when the net was loaded
  if (rule.ok()) rule->fill(blob.dtype, blob.shape, name, seed, data);
}

// Checks that two nets agree about a variable that both have. Content is compared if both have some, since a copy may have been changed.
Status check_agreement(const Net& net, const Variable& variable, const Shared& other) {
  const std::shared_ptr<const Blob>&one = variable.initial.blob, &two = other.variable->initial.blob;
  const DeclaredType &type = variable.type, &others = other.variable->type;
  if (type.dtype != others.dtype) return disagree(Code::dtype_mismatch, net, variable, other, type_text(type));
  if (type != others) return disagree(Code::shape_mismatch, net, variable, other, type_text(type));
  if (variable.replica_of != other.variable->replica_of)
    return disagree(Code::weights_mismatch, net, variable, other,
                    variable.replica_of.empty() ? std::string("no replica") : fmt::format("a replica of {}", quoted(variable.replica_of)));
  if (!one && !two && variable.initializer != other.variable->initializer && !variable.initializer.empty() &&
      !other.variable->initializer.empty())
    return disagree(Code::weights_mismatch, net, variable, other, fmt::format("filled by {}", variable.initializer));
  if (!one || !two || one == two) return {};
  if (one->bytes > 0 && std::memcmp(one->data, two->data, static_cast<size_t>(one->bytes)) != 0)
    return {Code::weights_mismatch,
            fmt::format("variable {} begins with other numbers in net {} than in net {}", quoted(variable.name), quoted(net.name),
                        quoted(other.net->name)),
            "save the nets together, or give it another name in one of them"};
  return {};
}

// Refuses a net that updates a variable and leaves its replicas, which other nets have, as they are: they would differ from then on.
Status check_replicas_are_updated(const Net& net, const std::vector<Shared>& all) {
  const auto updates = [&](const std::string& name) {
    return std::any_of(net.variables.begin(), net.variables.end(), [&](const Variable& v) { return v.name == name && v.first != v.last; });
  };
  for (const Shared& shared : all)
    if (const std::string& of = shared.variable->replica_of; !of.empty() && updates(of) && !updates(shared.variable->name))
      return {Code::hazard,
              fmt::format("net {} updates variable {}, and not {}, its replica in net {}", quoted(net.name), quoted(of),
                          quoted(shared.variable->name), quoted(shared.net->name)),
              "open the nets in two sessions, or make replicas of both"};
  return {};
}

}  // namespace

Result<std::shared_ptr<VariableStore>> VariableStore::create(std::span<const Net* const> nets, uint64_t seed, const Limits& limits,
                                                             std::shared_ptr<const OutstandingWork> outstanding) {
  std::vector<Shared> all;
  std::unordered_map<std::string_view, size_t> known;
  for (const Net* net : nets)
    for (const Variable& variable : net->variables) {
      const auto [at, is_new] = known.emplace(variable.name, all.size());
      if (is_new) {
        all.push_back({net, &variable});
        continue;
      }
      Shared& other = all[at->second];
      HEDDLE_CHECK(check_agreement(*net, variable, other));
      if ((!other.variable->initial.blob && variable.initial.blob) || says_nothing(*other.variable)) other = {net, &variable};
    }
  for (const Net* net : nets) HEDDLE_CHECK(check_replicas_are_updated(*net, all));
  auto store = std::make_shared<VariableStore>();
  store->seed_ = seed;
  store->outstanding_ = std::move(outstanding);
  // A file of some bytes may ask for any number of them.
  int64_t by_rule = 0;
  for (const Shared& shared : all) {
    const std::optional<Shape> shape = shared.variable->type.fixed_shape();
    if (shared.variable->initial.blob || !shape) continue;
    const int64_t bytes = byte_width(shared.variable->type.dtype) * shape->element_count();
    if (bytes > limits.plan_bytes - by_rule)
      return over_limit(limits, &Limits::plan_bytes,
                        fmt::format("variable {} without content takes {}, beside {} of others", quoted(shared.variable->name),
                                    human_bytes(bytes), human_bytes(by_rule)));
    by_rule += bytes;
  }
  for (const Shared& shared : all) {
    const Variable& variable = *shared.variable;
    const std::shared_ptr<const Blob>& initial = variable.initial.blob;
    const std::optional<Shape> shape = variable.type.fixed_shape();
    if (says_nothing(variable) || !shape)
      return Status(Code::weights_missing, fmt::format("variable {} has no initial content", quoted(variable.name)),
                    "load the net with its weights, or give the variable an initializer");
    const size_t at = store->entries_.size();
    Entry& entry = store->entries_.emplace_back();
    entry.of = at;
    entry.name = variable.name;
    entry.initializer = variable.initializer;
    entry.trained = initial != nullptr;  // before the net was loaded
    entry.blob = lasting_blob(variable.type.dtype, *shape, &entry.data);
    if (initial && initial->bytes > 0) std::memcpy(entry.data, initial->data, static_cast<size_t>(initial->bytes));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string& replica_of = all[i].variable->replica_of;
    if (replica_of.empty()) continue;
    store->entries_[i].of = known.at(replica_of);  // the net has it: it was checked when it was loaded
    store->entries_[store->entries_[i].of].replicas.push_back(i);
  }
  for (size_t i = 0; i < all.size(); ++i) store->copy_to_replicas(i);
  return store;
}

std::vector<std::string> VariableStore::names() const {
  std::vector<std::string> names;
  for (const Entry& e : entries_) names.push_back(e.name);
  return names;
}

int64_t VariableStore::bytes() const {
  int64_t total = 0;
  for (const Entry& e : entries_) total += e.blob->bytes;
  return total;
}

// `trained` is false only for variables that have no content yet.
Status VariableStore::fill(const Interruption& until) const {
  if (filled_.load(std::memory_order_acquire)) return {};
  const MutexLock lock(filling_);
  for (; next_to_fill_ < entries_.size(); ++next_to_fill_) {
    const Entry& e = entries_[next_to_fill_];
    if (e.trained || e.initializer.empty()) continue;
    HEDDLE_CHECK(until.status(), fmt::format("before variable {} was initialised", quoted(e.name)));
    fill_by_rule(e.initializer, *e.blob, e.name, seed_, e.data);
    for (const size_t replica : e.replicas) copy_bytes(*e.blob, e.data, entries_[replica].data);
  }
  filled_.store(true, std::memory_order_release);
  return {};
}

Status VariableStore::enter(FairSharedMutex::Hold& hold, FairSharedMutex::Use use, const Interruption& until) const {
  HEDDLE_CHECK(fill(until));
  HEDDLE_CHECK(turn_status(hold.enter(turns_, use, until), "the session's variables"));
  return outstanding_ ? outstanding_->busy(busy_name_) : Status();
}

Status VariableStore::initialize(uint64_t seed, bool overwrite, const Interruption& until) {
  FairSharedMutex::Hold turn;
  HEDDLE_CHECK(enter(turn, FairSharedMutex::Use::alone, until));
  for (const Entry& e : entries_)
    if (!overwrite && !e.initializer.empty() && e.trained)
      return {Code::hazard, fmt::format("variable {} was written since it was initialised", quoted(e.name)),
              "say that it is to be overwritten, or open another session"};
  for (size_t i = 0; i < entries_.size(); ++i)
    if (!entries_[i].initializer.empty()) HEDDLE_CHECK(before_write_with_replicas(i, until));
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& e = entries_[i];
    if (e.initializer.empty()) continue;
    fill_by_rule(e.initializer, *e.blob, e.name, seed, e.data);
    e.torn = false;
    written(i, nullptr);
    e.trained = false;
    copy_to_replicas(i);
  }
  return {};
}

// REQUIRES: the turn alone, or that nothing else knows the store.
void VariableStore::copy_to_replicas(size_t i) {
  for (const size_t replica : entries_[i].replicas) {
    Entry& e = entries_[replica];
    copy_bytes(*e.blob, entries_[i].data, e.data);
    e.torn = false;
    e.trained = entries_[i].trained;
    written(replica, nullptr);
  }
}

Status VariableStore::before_write_with_replicas(size_t i, const Interruption& until) const {
  HEDDLE_CHECK(before_write(i, until));
  for (const size_t replica : entries_[i].replicas) HEDDLE_CHECK(before_write(replica, until));
  return {};
}

Status VariableStore::read(size_t i, void* destination, const Interruption& until) const {
  const Entry& e = entries_[i];
  FairSharedMutex::Hold turn;
  HEDDLE_CHECK(enter(turn, FairSharedMutex::Use::shared, until));
  HEDDLE_CHECK(freshen(i, nullptr, until));
  if (e.blob->bytes > 0) std::memcpy(destination, e.data, static_cast<size_t>(e.blob->bytes));
  return {};
}

Status VariableStore::write(size_t i, const void* source, const Interruption& until) {
  FairSharedMutex::Hold turn;
  HEDDLE_CHECK(enter(turn, FairSharedMutex::Use::alone, until));
  return overwrite(i, source, until);
}

// REQUIRES: the turn alone.
Status VariableStore::overwrite(size_t i, const void* source, const Interruption& until) {
  Entry& e = entries_[i];
  HEDDLE_CHECK(before_write_with_replicas(i, until));
  copy_bytes(*e.blob, source, e.data);
  e.torn = false;
  e.trained = true;
  written(i, nullptr);
  copy_to_replicas(i);
  return {};
}

std::vector<std::shared_ptr<const Blob>> VariableStore::snapshot_memory() const {
  std::vector<std::shared_ptr<const Blob>> memory;
  for (size_t i = 0; i < entries_.size(); ++i) {
    std::byte* place = nullptr;
    memory.push_back(is_replica(i) ? nullptr : Blob::allocate(dtype(i), shape(i), &place));
  }
  return memory;
}

Result<PendingSnapshot> VariableStore::begin_snapshot(const Interruption& until,
                                                      std::span<const std::shared_ptr<const Blob>> memory) const {
  auto made = std::make_shared<Snapshot>();
  for (size_t i = 0; i < entries_.size(); ++i) {
    Snapshot::Part& part = made->parts.emplace_back();
    if (is_replica(i)) {
      part.state = Snapshot::State::done;
    } else if (i < memory.size() && memory[i] && memory[i].use_count() == 1) {
      part.blob = memory[i];
      part.place = const_cast<std::byte*>(part.blob->data);  // it was allocated for a snapshot
    } else {
      part.blob = Blob::allocate(dtype(i), shape(i), &part.place);
    }
  }
  FairSharedMutex::Hold turn;
  HEDDLE_CHECK(enter(turn, FairSharedMutex::Use::shared, until));
  HEDDLE_CHECK(whole());
  const MutexLock lock(snapshots_mutex_);
  snapshots_.push_back(made);
  ++snapshot_count_;
  return PendingSnapshot(shared_from_this(), std::move(made));
}

Result<std::vector<std::shared_ptr<const Blob>>> VariableStore::snapshot(const Interruption& until) const {
  HEDDLE_TRY(PendingSnapshot pending, begin_snapshot(until));
  return pending.finish(until);
}

PendingSnapshot::PendingSnapshot(std::shared_ptr<const VariableStore> store, std::shared_ptr<Snapshot> snapshot)
    : store_(std::move(store)), snapshot_(std::move(snapshot)) {}
PendingSnapshot::PendingSnapshot(PendingSnapshot&&) noexcept = default;

PendingSnapshot::~PendingSnapshot() {
  if (!snapshot_) return;
  const MutexLock lock(store_->snapshots_mutex_);
  store_->unregister(*snapshot_);
}

Result<std::vector<std::shared_ptr<const Blob>>> PendingSnapshot::finish(const Interruption& until) {
  const std::shared_ptr<Snapshot> made = std::move(snapshot_);
  store_->finish(*made, until);
  HEDDLE_CHECK(std::move(made->failed));
  std::vector<std::shared_ptr<const Blob>> copies;
  for (Snapshot::Part& part : made->parts) copies.push_back(std::move(part.blob));
  return copies;
}

// Copies one variable, without the lock. If it fails, the part waits for another attempt.
Status VariableStore::copy_part(Snapshot& snapshot, size_t i, const Interruption& until) const {
  Snapshot::Part& part = snapshot.parts[i];
  part.state = Snapshot::State::copying;
  snapshots_mutex_.unlock();
  Status copied;
  try {
    copied = freshen(i, nullptr, until);
  } catch (...) {
    copied = status_of_exception();
  }
  if (copied.ok() && part.blob->bytes > 0) std::memcpy(part.place, entries_[i].data, static_cast<size_t>(part.blob->bytes));
  snapshots_mutex_.lock();
  part.state = copied.ok() ? Snapshot::State::done : Snapshot::State::waiting;
  part_done_.notify_all();
  return copied;
}

// Copies the parts that no run copies, until all are done or one has failed, and unregisters the snapshot. A run that copies a part has the
// turn alone, and keeps the snapshot until it is done: the caller need not wait for it when its own time is over.
void VariableStore::finish(Snapshot& snapshot, const Interruption& until) const {
  const MutexLock lock(snapshots_mutex_);
  const auto any = [&](Snapshot::State state) {
    return std::any_of(snapshot.parts.begin(), snapshot.parts.end(), [&](const Snapshot::Part& part) { return part.state == state; });
  };
  for (;;) {
    for (size_t i = 0; i < snapshot.parts.size() && snapshot.failed.ok(); ++i)
      if (snapshot.parts[i].state == Snapshot::State::waiting) snapshot.failed = copy_part(snapshot, i, until);
    if (!snapshot.failed.ok() || (!any(Snapshot::State::copying) && !any(Snapshot::State::waiting))) break;
    if (any(Snapshot::State::copying) && !part_done_.wait_for(snapshots_mutex_, look_again))
      snapshot.failed = until.status().during("while a run copied a variable for the snapshot");
  }
  unregister(snapshot);
}

void VariableStore::unregister(const Snapshot& snapshot) const {
  std::erase_if(snapshots_, [&](const auto& registered) { return registered.get() == &snapshot; });
  --snapshot_count_;
}

Status VariableStore::before_write(size_t i, const Interruption& until) const {
  if (snapshot_count_.load(std::memory_order_acquire) == 0) return {};
  const MutexLock lock(snapshots_mutex_);
  for (auto next = find_part(i, Snapshot::State::waiting); next; next = find_part(i, Snapshot::State::waiting)) {
    const Status copied = copy_part(*next, i, until);
    HEDDLE_CHECK(until.status(), "while a variable was copied for a snapshot");
    if (!copied.ok()) next->failed = copied;
  }
  while (find_part(i, Snapshot::State::copying)) {
    HEDDLE_CHECK(until.status(), "while a snapshot of a variable was waited for");
    part_done_.wait_for(snapshots_mutex_, look_again);
  }
  return {};
}

// Returns a snapshot whose part `i` is in that state, and is still wanted; null: there is none.
std::shared_ptr<Snapshot> VariableStore::find_part(size_t i, Snapshot::State state) const {
  for (const std::shared_ptr<Snapshot>& snapshot : snapshots_)
    if (snapshot->parts[i].state == state && (state != Snapshot::State::waiting || snapshot->failed.ok())) return snapshot;
  return nullptr;
}

Status VariableStore::replace(std::span<const std::shared_ptr<const Blob>> contents, const Interruption& until) {
  FairSharedMutex::Hold turn;
  HEDDLE_CHECK(enter(turn, FairSharedMutex::Use::alone, until));
  for (size_t i = 0; i < contents.size(); ++i)
    if (contents[i]) HEDDLE_CHECK(before_write_with_replicas(i, until));
  for (size_t i = 0; i < contents.size(); ++i)
    if (contents[i]) HEDDLE_CHECK(overwrite(i, contents[i]->data, {}));
  return {};
}

Status VariableStore::make_home(size_t i, const std::shared_ptr<Device>& device) {
  Entry& e = entries_[i];
  const MutexLock lock(homes_mutex_);
  if (home_on(e, *device)) return {};
  // Drop copies on lost devices, unless the newest content may have been there.
  if (!e.stale) std::erase_if(e.homes, [](const auto& home) { return home->device->lost(); });
  HEDDLE_TRY(DeviceMemory memory, device->allocate(e.blob->bytes), fmt::format("while variable {} was given a home there", quoted(e.name)));
  auto home = std::make_unique<Home>();
  home->device = device;
  home->memory = std::move(memory);
  e.homes.push_back(std::move(home));
  has_homes_.store(true, std::memory_order_release);
  return {};
}

VariableStore::Home* VariableStore::home_on(const Entry& e, const Device& device) const {
  const auto found = std::find_if(e.homes.begin(), e.homes.end(), [&](const auto& h) { return h->device.get() == &device; });
  return found == e.homes.end() ? nullptr : found->get();
}

std::byte* VariableStore::data_on(size_t i, const Device& device) const {
  const MutexLock lock(homes_mutex_);
  const Home* const home = home_on(entries_[i], device);
  return home ? static_cast<std::byte*>(home->memory.get()) : nullptr;
}

// Copies through memory that only the device writes: a copy that was given up may complete when the variable has another content.
Status VariableStore::copy_to_host(const Entry& e, const CopyWait& wait) const {
  Home* newest = nullptr;
  {
    const MutexLock lock(homes_mutex_);
    if (!e.stale) return {};
    newest = std::find_if(e.homes.begin(), e.homes.end(), [](const auto& h) { return !h->stale; })->get();
  }
  if (!newest->staging) newest->staging = Blob::allocate(DType::u8, Shape{e.blob->bytes}, &newest->staging_data);
  CopyWait careful = wait;
  careful.keep_host = newest->staging;
  Status status = newest->device->read(newest->staging_data, newest->memory.get(), e.blob->bytes, careful);
  if (!status.ok()) {
    newest->staging = nullptr;
    return std::move(status).during(fmt::format("while variable {} was read", quoted(e.name)));
  }
  if (e.blob->bytes > 0) std::memcpy(e.data, newest->staging_data, static_cast<size_t>(e.blob->bytes));
  const MutexLock lock(homes_mutex_);
  e.stale = false;
  return {};
}

Status VariableStore::copy_to_home(const Entry& e, const Device& device, const CopyWait& wait) const {
  Home* home = nullptr;
  {
    const MutexLock lock(homes_mutex_);
    home = home_on(e, device);
    if (!home->stale) return {};
  }
  HEDDLE_CHECK(home->device->write(home->memory.get(), e.data, e.blob->bytes, wait),
               fmt::format("while variable {} was uploaded", quoted(e.name)));
  const MutexLock lock(homes_mutex_);
  home->stale = false;
  return {};
}

Status VariableStore::freshen(size_t i, const Device* device, const Interruption& until) const {
  const Entry& e = entries_[i];
  {
    const MutexLock lock(homes_mutex_);
    if (device ? !home_on(e, *device)->stale : !e.stale) return {};
  }
  // Concurrent runs that read may need the same copy: one of them makes it.
  FairSharedMutex::Hold copying;
  const FairSharedMutex::Outcome outcome = copying.enter(copying_, FairSharedMutex::Use::alone, until);
  if (outcome == FairSharedMutex::Outcome::late || outcome == FairSharedMutex::Outcome::cancelled)
    return {outcome == FairSharedMutex::Outcome::late ? Code::deadline_exceeded : Code::cancelled,
            fmt::format("the run ended while it waited for a copy of variable {} that another run makes", quoted(e.name))};
  const CopyWait wait = {until, shared_from_this(), nullptr};
  HEDDLE_CHECK(copy_to_host(e, wait));
  return device ? copy_to_home(e, *device, wait) : Status();
}

void VariableStore::written(size_t i, const Device* device) {
  Entry& e = entries_[i];
  const MutexLock lock(homes_mutex_);
  e.stale = device != nullptr;
  for (const auto& home : e.homes) home->stale = home->device.get() != device;
}

Status VariableStore::whole() const {
  constexpr const char* mend = "write it, or open the net again";
  const bool homes = has_homes();
  const MutexLock lock(homes_mutex_);
  for (const Entry& e : entries_) {
    if (e.torn) return {Code::hazard, fmt::format("variable {} was left half-updated by a run that failed", quoted(e.name)), mend};
    const auto gone = [&](const auto& home) { return !home->stale && home->device->lost(); };
    if (homes && e.stale && std::any_of(e.homes.begin(), e.homes.end(), gone))
      return {Code::device_lost, fmt::format("variable {} was on a device that was lost, and its content with it", quoted(e.name)), mend};
  }
  return {};
}

}  // namespace heddle
