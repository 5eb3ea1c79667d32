#include "device/pinned_staging.h"

#include <algorithm>
#include <cstring>

#include "device/errors.h"

namespace heddle::cuda {
namespace {

constexpr uintptr_t pinned_page = 4096;  // memory is pinned by whole pages, of this size or a multiple of it
constexpr size_t max_seen_ranges = 256;  // beyond this all are forgotten and checked again
constexpr uint64_t min_buffer = uint64_t{64} << 10, piece_bytes = uint64_t{2} << 20;

}  // namespace

// ---------------------------------------------------------------- what is pinned

PinnedMemory& PinnedMemory::all() {
  static PinnedMemory& memory = *new PinnedMemory();
  return memory;
}

void PinnedMemory::add_allocated(const void* memory, uint64_t bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pieces_[reinterpret_cast<uintptr_t>(memory)] = {bytes, 0};
}

void PinnedMemory::remove_allocated(const void* memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  pieces_.erase(reinterpret_cast<uintptr_t>(memory));
}

plugin::Status PinnedMemory::enter(void* memory, uint64_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(memory);
  const std::lock_guard<std::mutex> alone(entering_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto piece = piece_of(first, bytes);
    if (piece != pieces_.end() && piece->second.users > 0) {
      ++piece->second.users;
      entered_.emplace(first, piece->first);
      return {};
    }
  }
  const cudaError_t error = Api::get().cudaHostRegister(memory, bytes, cudaHostRegisterPortable);
  const bool is_taken = error == cudaErrorHostMemoryAlreadyRegistered;
  if (error != cudaSuccess && !is_taken) return failed("cudaHostRegister", error);
  if (is_taken) Api::get().cudaGetLastError();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_taken) pieces_[first] = {bytes, 1};
  entered_.emplace(first, is_taken ? 0 : first);
  return {};
}

void PinnedMemory::leave(void* memory, bool lost) {
  const std::lock_guard<std::mutex> alone(entering_);
  uintptr_t registered = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // The caller does not say which of several entries at the address it leaves. Entries without a registration go first, so that no
    // registration ends too early.
    const auto [begin, end] = entered_.equal_range(reinterpret_cast<uintptr_t>(memory));
    if (begin == end) return;
    const auto left = std::min_element(begin, end, [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto piece = pieces_.find(left->second);
    entered_.erase(left);
    if (piece == pieces_.end() || --piece->second.users > 0) return;
    registered = piece->first;
    pieces_.erase(piece);
  }
  if (!lost) Api::get().cudaHostUnregister(reinterpret_cast<void*>(registered));
}

// Returns the piece that contains all of those bytes; end() if there is none.
std::map<uintptr_t, PinnedMemory::Piece>::iterator PinnedMemory::piece_of(uintptr_t first, uint64_t bytes) {
  const auto behind = pieces_.upper_bound(first);
  if (behind == pieces_.begin()) return pieces_.end();
  const auto piece = std::prev(behind);
  const uint64_t offset = first - piece->first, length = piece->second.bytes;
  return offset <= length && bytes <= length - offset ? piece : pieces_.end();
}

bool PinnedMemory::overlaps(uintptr_t first, uint64_t bytes) const {
  const auto behind = pieces_.lower_bound(first + bytes);
  if (behind == pieces_.begin()) return false;
  const auto& [begin, piece] = *std::prev(behind);
  return begin + piece.bytes > first;
}

bool PinnedMemory::is_pinned(const void* memory, uint64_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(memory);
  const std::pair<uintptr_t, uint64_t> range(first, bytes);
  bool is_seen = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (piece_of(first, bytes) != pieces_.end()) return true;
    if (overlaps(first, bytes)) return false;
    is_seen = seen_.count(range) > 0;
  }
  const auto knows = [](uintptr_t at) {
    cudaPointerAttributes attributes = {};
    const cudaError_t error = Api::get().cudaPointerGetAttributes(&attributes, reinterpret_cast<const void*>(at));
    if (error != cudaSuccess) Api::get().cudaGetLastError();
    return error == cudaSuccess && attributes.type == cudaMemoryTypeHost;
  };
  bool pinned = knows(first) && knows(first + bytes - 1);
  for (uintptr_t at = (first / pinned_page + 1) * pinned_page; pinned && !is_seen && at < first + bytes; at += pinned_page)
    pinned = knows(at);
  if (pinned == is_seen) return pinned;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (seen_.size() >= max_seen_ranges) seen_.clear();
  pinned ? void(seen_.insert(range)) : void(seen_.erase(range));
  return pinned;
}

// ---------------------------------------------------------------- copies

Staging::~Staging() {
  if (loss_) return;
  const Api& api = Api::get();
  for (void* const buffer : buffers_) api.cudaFreeHost(buffer);
  for (const cudaEvent_t event : {beside_.copied[0], beside_.copied[1], beside_.moved[0], beside_.moved[1], beside_.begun, beside_.ended})
    if (event) api.cudaEventDestroy(event);
  if (beside_.stream) api.cudaStreamDestroy(beside_.stream);
}

// Makes room for a copy of one piece, or for two pieces if the copy is longer.
plugin::Status Staging::reserve(uint64_t bytes) {
  const uint64_t needed = bytes <= piece_bytes ? bytes : 2 * piece_bytes;
  if (buffer_bytes_ >= needed) return {};
  uint64_t wanted = min_buffer;
  while (wanted < needed) wanted *= 2;
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
  const cudaError_t error = Api::get().cudaLaunchHostFunc(stream, copy, piece);
  if (error == cudaSuccess) return {};
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(piece);  // it was not enqueued
  return failed("cudaLaunchHostFunc", error);
}

plugin::Status Staging::make_beside() {
  for (cudaEvent_t* const event :
       {&beside_.copied[0], &beside_.copied[1], &beside_.moved[0], &beside_.moved[1], &beside_.begun, &beside_.ended})
    if (!*event) HEDDLE_CUDA_CALL(cudaEventCreateWithFlags, event, cudaEventDisableTiming);
  if (!beside_.stream) HEDDLE_CUDA_CALL(cudaStreamCreateWithPriority, &beside_.stream, cudaStreamNonBlocking, 0);
  return {};
}

// Performs a copy of several pieces, whose steps `enqueue_pieces` enqueues. The next work on the copies' stream waits for all host
// functions, also where not every piece could be enqueued: draining that stream drains both.
template <class EnqueuePieces>
plugin::Status Staging::in_pieces(cudaStream_t stream, const EnqueuePieces& enqueue_pieces) {
  HEDDLE_PLUGIN_CHECK(make_beside());
  // Earlier work on the stream may have written the source, and used the buffer.
  HEDDLE_CUDA_CALL(cudaEventRecord, beside_.begun, stream);
  HEDDLE_CUDA_CALL(cudaStreamWaitEvent, beside_.stream, beside_.begun, 0);
  const plugin::Status status = enqueue_pieces();
  const auto join = [&]() -> plugin::Status {
    HEDDLE_CUDA_CALL(cudaEventRecord, beside_.ended, beside_.stream);
    HEDDLE_CUDA_CALL(cudaStreamWaitEvent, stream, beside_.ended, 0);
    return {};
  };
  const plugin::Status joined = join();
  return status.ok() ? joined : status;
}

plugin::Status Staging::to_host(cudaStream_t stream, void* destination, const void* source, uint64_t bytes) {
  HEDDLE_PLUGIN_CHECK(reserve(bytes));
  auto* const to = static_cast<std::byte*>(destination);
  const auto* const from = static_cast<const std::byte*>(source);
  auto* const buffer = static_cast<std::byte*>(buffers_.back());
  if (bytes <= piece_bytes) {
    HEDDLE_CUDA_CALL(cudaMemcpyAsync, buffer, from, bytes, cudaMemcpyDeviceToHost, stream);
    return call(stream, to, buffer, bytes);
  }
  return in_pieces(stream, [&]() -> plugin::Status {
    for (uint64_t done = 0; done < bytes; done += piece_bytes) {
      const uint64_t now = std::min(bytes - done, piece_bytes), half = done / piece_bytes % 2;
      if (done >= 2 * piece_bytes) HEDDLE_CUDA_CALL(cudaStreamWaitEvent, stream, beside_.moved[half], 0);
      HEDDLE_CUDA_CALL(cudaMemcpyAsync, buffer + half * piece_bytes, from + done, now, cudaMemcpyDeviceToHost, stream);
      HEDDLE_CUDA_CALL(cudaEventRecord, beside_.copied[half], stream);
      HEDDLE_CUDA_CALL(cudaStreamWaitEvent, beside_.stream, beside_.copied[half], 0);
      HEDDLE_PLUGIN_CHECK(call(beside_.stream, to + done, buffer + half * piece_bytes, now));
      HEDDLE_CUDA_CALL(cudaEventRecord, beside_.moved[half], beside_.stream);
    }
    return {};
  });
}

plugin::Status Staging::from_host(cudaStream_t stream, void* destination, const void* source, uint64_t bytes) {
  HEDDLE_PLUGIN_CHECK(reserve(bytes));
  auto* const to = static_cast<std::byte*>(destination);
  const auto* const from = static_cast<const std::byte*>(source);
  auto* const buffer = static_cast<std::byte*>(buffers_.back());
  if (bytes <= piece_bytes) {
    HEDDLE_PLUGIN_CHECK(call(stream, buffer, from, bytes));
    HEDDLE_CUDA_CALL(cudaMemcpyAsync, to, buffer, bytes, cudaMemcpyHostToDevice, stream);
    return {};
  }
  return in_pieces(stream, [&]() -> plugin::Status {
    for (uint64_t done = 0; done < bytes; done += piece_bytes) {
      const uint64_t now = std::min(bytes - done, piece_bytes), half = done / piece_bytes % 2;
      if (done >= 2 * piece_bytes) HEDDLE_CUDA_CALL(cudaStreamWaitEvent, beside_.stream, beside_.copied[half], 0);
      HEDDLE_PLUGIN_CHECK(call(beside_.stream, buffer + half * piece_bytes, from + done, now));
      HEDDLE_CUDA_CALL(cudaEventRecord, beside_.moved[half], beside_.stream);
      HEDDLE_CUDA_CALL(cudaStreamWaitEvent, stream, beside_.moved[half], 0);
      HEDDLE_CUDA_CALL(cudaMemcpyAsync, to + done, buffer + half * piece_bytes, now, cudaMemcpyHostToDevice, stream);
      HEDDLE_CUDA_CALL(cudaEventRecord, beside_.copied[half], stream);
    }
    return {};
  });
}

}  // namespace heddle::cuda
