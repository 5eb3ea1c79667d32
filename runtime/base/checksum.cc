#include "base/checksum.h"

#define XXH_STATIC_LINKING_ONLY  // for the state's definition, so that it needs no allocation of its own
#include <xxhash.h>

namespace heddle {

struct RunningChecksum::State {
  XXH64_state_t xxh;
};

uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH64(bytes.data(), bytes.size(), 0);
}

Digest128 digest128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

RunningChecksum::RunningChecksum() : state_(std::make_unique<State>()) {
  XXH64_reset(&state_->xxh, 0);
}
RunningChecksum::~RunningChecksum() = default;
void RunningChecksum::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH64_update(&state_->xxh, bytes.data(), bytes.size());
}
uint64_t RunningChecksum::value() const {
  return XXH64_digest(&state_->xxh);
}

}  // namespace heddle
