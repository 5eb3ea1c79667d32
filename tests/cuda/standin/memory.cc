#include "memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace heddle::cuda::standin {
namespace {

constexpr size_t device_alignment = 256, page = 4096;

std::shared_ptr<void> storage_of(uint64_t bytes, size_t alignment) {
  void* data = nullptr;
  if (::posix_memalign(&data, alignment, std::max<uint64_t>(bytes, 1)) != 0) return nullptr;
  std::memset(data, 0xff, bytes);
  return {data, [](void* memory) { std::free(memory); }};
}

uintptr_t number_of(const void* address) {
  return reinterpret_cast<uintptr_t>(address);
}

template <class Blocks>
auto* find_in(Blocks& blocks, const void* address) {
  auto after = blocks.upper_bound(number_of(address));
  if (after == blocks.begin()) return static_cast<decltype(&after->second)>(nullptr);
  auto& block = std::prev(after)->second;
  return number_of(address) - number_of(block.data) < std::max<uint64_t>(block.bytes, 1) ? &block : nullptr;
}

}  // namespace

Block* Memory::allocate(int device, uint64_t bytes, uint64_t limit) {
  uint64_t& taken = bytes_[device];
  if (bytes > limit || taken > limit - bytes) return nullptr;
  std::shared_ptr<void> storage = storage_of(bytes, device_alignment);
  if (!storage) return nullptr;
  taken += bytes;
  Block& block = blocks_[number_of(storage.get())];
  block.data = static_cast<std::byte*>(storage.get());
  block.bytes = bytes;
  block.device = device;
  block.storage = std::move(storage);
  return &block;
}

std::shared_ptr<void> Memory::release(const Block& block) {
  bytes_[block.device] -= block.bytes;
  std::shared_ptr<void> storage = block.storage;
  blocks_.erase(number_of(block.data));
  return storage;
}

HostBlock* Memory::allocate_host(uint64_t bytes) {
  std::shared_ptr<void> storage = storage_of(bytes, page);
  if (!storage) return nullptr;
  HostBlock& block = host_blocks_[number_of(storage.get())];
  block.data = static_cast<std::byte*>(storage.get());
  block.bytes = bytes;
  block.storage = std::move(storage);
  return &block;
}

HostBlock* Memory::register_host(void* data, uint64_t bytes) {
  HostBlock& block = host_blocks_[number_of(data)];
  block.data = static_cast<std::byte*>(data);
  block.bytes = bytes;
  block.registered = true;
  return &block;
}

void Memory::release_host(const HostBlock& block) {
  host_blocks_.erase(number_of(block.data));
}

Block* Memory::block_at(const void* address) {
  return find_in(blocks_, address);
}
HostBlock* Memory::host_block_at(const void* address) {
  return find_in(host_blocks_, address);
}

bool Memory::overlaps_host(const void* address, uint64_t bytes) const {
  if (find_in(host_blocks_, address)) return true;
  const auto next = host_blocks_.upper_bound(number_of(address));
  return next != host_blocks_.end() && next->first < number_of(address) + bytes;
}

uint64_t Memory::bytes_on(int device) const {
  const auto found = bytes_.find(device);
  return found == bytes_.end() ? 0 : found->second;
}

void Memory::clear() {
  blocks_.clear();
  host_blocks_.clear();
  bytes_.clear();
}

}  // namespace heddle::cuda::standin
