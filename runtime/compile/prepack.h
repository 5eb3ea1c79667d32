// PackCache: packed forms of constants, shared by all plans and contexts of a session.
//
// Keyed by content (xxh64 of the bytes), dtype, shape, the kernel's key and the size. Thread-safe. Entries live as long as a plan holds
// them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

class PackCache {
 public:
  // `fill` writes the packed bytes; called at most once per key. The result is 64-byte aligned. Null when fill fails.
  std::shared_ptr<const Blob> find_or_pack(const Blob& content, const std::string& key, uint64_t bytes,
                                           const std::function<bool(void*)>& fill);
  // Bytes of the packed forms that are in use.
  int64_t bytes() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const Blob>> entries_;
};

}  // namespace heddle
