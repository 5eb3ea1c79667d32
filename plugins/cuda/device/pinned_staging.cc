#include "device/pinned_staging.h"

#include <algorithm>
#include <cstring>

#include "device/errors.h"

namespace heddle::cuda {
namespace {

constexpr uint64_t least_buffer = uint64_t{64} << 10, most_buffer = uint64_t{4} << 20;

}  // namespace

// ---------------------------------------------------------------- what is pinned

PinnedMemory& PinnedMemory::all() {
  static PinnedMemory& memory = *new PinnedMemory();
  return memory;
}

void PinnedMemory::add(const void* memory, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bytes_[reinterpret_cast<uintptr_t>(memory)] = bytes;
}

bool PinnedMemory::remove(const void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bytes_.erase(reinterpret_cast<uintptr_t>(memory)) > 0;
}

bool PinnedMemory::holds(const void* memory, uint64_t bytes) const {
  const auto first = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto behind = bytes_.upper_bound(first);
  if (behind == bytes_.begin()) return false;
  const auto& [begin, length] = *std::prev(behind);
  return first - begin <= length && bytes <= length - (first - begin);
}

// ---------------------------------------------------------------- copies

Staging::~Staging() {
  for (void* const buffer : buffers_) Api::get().cudaFreeHost(buffer);
}

plugin::Status Staging::reserve(uint64_t bytes) {
  if (buffer_bytes_ >= std::min(bytes, most_buffer)) return {};
  uint64_t wanted = least_buffer;
  while (wanted < std::min(bytes, most_buffer)) wanted *= 2;
  void* buffer = nullptr;
  HEDDLE_CUDA_CALL(cudaHostAlloc, &buffer, wanted, cudaHostAllocPortable);
  buffers_.push_back(buffer);
  buffer_bytes_ = wanted;
  return {};
}

void Staging::copy(void* piece) {
  auto* const p = static_cast<Piece*>(piece);
  std::memcpy(p->destination, p->source, p->bytes);
  const std::lock_guard<std::mutex> lock(p->staging->mutex_);
  p->staging->idle_.push_back(p);
}

plugin::Status Staging::call(cudaStream_t stream, void* destination, const void* source, uint64_t bytes) {
  Piece* piece = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (idle_.empty()) {
      pieces_.push_back(std::make_unique<Piece>());
      idle_.reserve(pieces_.size());
      idle_.push_back(pieces_.back().get());
    }
    piece = idle_.back();
    idle_.pop_back();
  }
  *piece = {this, destination, source, bytes};
  HEDDLE_CUDA_CALL(cudaLaunchHostFunc, stream, copy, piece);
  return {};
}

plugin::Status Staging::to_host(cudaStream_t stream, void* destination, const void* source, uint64_t bytes) {
  HEDDLE_PLUGIN_CHECK(reserve(bytes));
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t now = std::min(bytes - done, buffer_bytes_);
    HEDDLE_CUDA_CALL(cudaMemcpyAsync, buffers_.back(), static_cast<const std::byte*>(source) + done, now, cudaMemcpyDeviceToHost, stream);
    HEDDLE_PLUGIN_CHECK(call(stream, static_cast<std::byte*>(destination) + done, buffers_.back(), now));
    done += now;
  }
  return {};
}

plugin::Status Staging::from_host(cudaStream_t stream, void* destination, const void* source, uint64_t bytes) {
  HEDDLE_PLUGIN_CHECK(reserve(bytes));
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t now = std::min(bytes - done, buffer_bytes_);
    HEDDLE_PLUGIN_CHECK(call(stream, buffers_.back(), static_cast<const std::byte*>(source) + done, now));
    HEDDLE_CUDA_CALL(cudaMemcpyAsync, static_cast<std::byte*>(destination) + done, buffers_.back(), now, cudaMemcpyHostToDevice, stream);
    done += now;
  }
  return {};
}

}  // namespace heddle::cuda
