#include "memory/variables.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/text.h"

namespace heddle {

Result<std::unique_ptr<VariableStore>> VariableStore::create(const Net& net) {
  auto store = std::make_unique<VariableStore>();
  for (const Variable& variable : net.variables) {
    const std::shared_ptr<const Blob>& initial = variable.initial.blob;
    if (!initial)
      return Status(Code::weights_missing, "variable " + quoted(variable.name) + " has no initial content",
                    "load the net with its weights");
    Entry entry;
    entry.name = variable.name;
    auto blob = Blob::allocate(initial->dtype, initial->shape, &entry.data);
    if (blob->bytes > 0) std::memcpy(entry.data, initial->data, static_cast<size_t>(blob->bytes));
    entry.blob = std::move(blob);
    store->entries_.push_back(std::move(entry));
  }
  return store;
}

int64_t VariableStore::bytes() const {
  int64_t total = 0;
  for (const Entry& e : entries_) total += e.blob->bytes;
  return total;
}

Status VariableStore::read(size_t i, void* destination, int64_t bytes) const {
  const Entry& e = entries_[i];
  if (bytes != e.blob->bytes)
    return {Code::shape_mismatch,
            "variable " + quoted(e.name) + " has " + std::to_string(e.blob->bytes) + " bytes, the buffer has " + std::to_string(bytes)};
  const std::shared_lock lock(mutex_);
  HEDDLE_CHECK(freshen(i, nullptr));
  if (bytes > 0) std::memcpy(destination, e.data, static_cast<size_t>(bytes));
  return {};
}

Status VariableStore::write(size_t i, const void* source, int64_t bytes) {
  Entry& e = entries_[i];
  if (bytes != e.blob->bytes)
    return {Code::shape_mismatch,
            "variable " + quoted(e.name) + " has " + std::to_string(e.blob->bytes) + " bytes, the source has " + std::to_string(bytes)};
  const std::unique_lock lock(mutex_);
  if (bytes > 0) std::memcpy(e.data, source, static_cast<size_t>(bytes));
  e.torn = false;
  written(i, nullptr);
  return {};
}

Status VariableStore::make_home(size_t i, const std::shared_ptr<Device>& device) {
  Entry& e = entries_[i];
  const std::lock_guard lock(homes_mutex_);
  for (const Home& home : e.homes)
    if (home.device == device) return {};
  HEDDLE_TRY(DeviceMemory memory, device->allocate(e.blob->bytes), "while variable " + quoted(e.name) + " was given a home there");
  e.homes.push_back({device, std::move(memory), true});
  has_homes_.store(true, std::memory_order_release);
  return {};
}

std::byte* VariableStore::data_on(size_t i, const Device& device) const {
  const std::lock_guard lock(homes_mutex_);
  for (const Home& home : entries_[i].homes)
    if (home.device.get() == &device) return static_cast<std::byte*>(home.memory.get());
  return nullptr;
}

Status VariableStore::freshen(size_t i, const Device* device) const {
  const Entry& e = entries_[i];
  const std::lock_guard lock(homes_mutex_);
  const auto home = std::find_if(e.homes.begin(), e.homes.end(), [&](const Home& h) { return h.device.get() == device; });
  if (device ? !home->stale : !e.stale) return {};
  if (e.stale) {
    const auto newest = std::find_if(e.homes.begin(), e.homes.end(), [](const Home& h) { return !h.stale; });
    HEDDLE_CHECK(newest->device->read(e.data, newest->memory.get(), e.blob->bytes), "while variable " + quoted(e.name) + " was read");
    e.stale = false;
  }
  if (!device) return {};
  HEDDLE_CHECK(home->device->write(home->memory.get(), e.data, e.blob->bytes), "while variable " + quoted(e.name) + " was uploaded");
  home->stale = false;
  return {};
}

void VariableStore::written(size_t i, const Device* device) {
  Entry& e = entries_[i];
  const std::lock_guard lock(homes_mutex_);
  e.stale = device != nullptr;
  for (Home& home : e.homes) home.stale = home.device.get() != device;
}

Status VariableStore::whole() const {
  for (const Entry& e : entries_)
    if (e.torn)
      return {Code::hazard, "variable " + quoted(e.name) + " was left half-updated by a run that failed",
              "write it, or open the net again"};
  return {};
}

}  // namespace heddle
