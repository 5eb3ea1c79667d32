// Packed constants of calls, by what they are packed of and their key: the same for every node, as in a session.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "alone/call_memory.h"

namespace heddle {

class PackedConstants {
 public:
  bool empty() const { return packs_.empty(); }

 private:
  friend class Packs;
  using Key = std::tuple<const void*, std::string, uint64_t>;  // the constant's bytes, the kernel's words, how many bytes
  std::map<Key, CallBytes> packs_;
};

}  // namespace heddle
