#include "base/content_hash.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <random>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace heddle {
namespace {

using Secret = std::array<std::byte, XXH3_SECRET_SIZE_MIN + 56>;  // as long as the library's own

// Draws from the system; where a filter forbids the call, from the processor.
Secret random_secret() {
  Secret secret;
  for (size_t got = 0; got < secret.size();) {
    const ssize_t n = ::getrandom(secret.data() + got, secret.size() - got, 0);
    if (n > 0) got += static_cast<size_t>(n);
    if (n >= 0 || errno == EINTR) continue;
    std::random_device device;
    for (; got < secret.size(); ++got) secret[got] = static_cast<std::byte>(device());
  }
  return secret;
}

}  // namespace

ContentHash content_hash(std::span<const std::byte> bytes) {
  static const Secret secret = random_secret();
  const XXH128_hash_t hash = XXH3_128bits_withSecret(bytes.data(), bytes.size(), secret.data(), secret.size());
  return {hash.low64, hash.high64};
}

std::string content_key(std::span<const std::byte> bytes) {
  const ContentHash hash = content_hash(bytes);
  std::string key(sizeof(hash), '\0');
  std::memcpy(key.data(), hash.data(), sizeof(hash));
  return key;
}

}  // namespace heddle
