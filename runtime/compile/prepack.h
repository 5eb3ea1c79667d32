// PackCache: packed forms of constants, shared by all plans and contexts of a session.
//
// Nets are not trusted, so a constant must not pass for another one. Packed forms are found by a 128-bit hash of the content that is keyed
// at random per process (base/content_hash.h), dtype, shape, the kernel's key and the size; where the bytes that an entry was packed from
// are still in memory, they are compared too. Only a weak reference holds them: the original of a packed constant leaves memory as before.
// Thread-safe; packing is done under no lock. Entries live as long as a plan holds them, and leave the table with the last one.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/content_hash.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

class PackCache {
 public:
  // Returns the part of an entry's key that depends on the content; tests pass one that collides.
  using ContentKey = std::string (*)(std::span<const std::byte>);
  explicit PackCache(ContentKey content_key = &heddle::content_key);
  // `fill` writes the packed bytes, once for each content while an entry of it is in use: other callers that request it wait, and pack it
  // themselves if that fails. The result is 64-byte aligned. Null when fill fails, or requests the form that it is itself packing, directly
  // or through other threads: then `in_circle` is true.
  std::shared_ptr<const Blob> find_or_pack(const Blob& content, const std::string& key, uint64_t bytes,
                                           const std::function<bool(void*)>& fill, bool* in_circle = nullptr);
  // Return the number of packed forms in use, and their bytes.
  size_t size() const;
  int64_t bytes() const;

 private:
  struct Table;
  struct Use;
  const ContentKey content_key_;
  std::shared_ptr<Table> table_;  // the entries that plans hold refer to it weakly
};

}  // namespace heddle
