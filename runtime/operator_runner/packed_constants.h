// Packed constants of calls, by what they are packed of and their key: the same for every node, as in a session.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "operator_runner/call_memory.h"

namespace heddle {

struct OperatorCall;

// Of calls that are made one after the other.
class PackedConstants {
 public:
  bool empty() const { return packs_.empty(); }
  // As heddle_host::prepack; null, with the reason in `error`: it is no constant, or `fill` fails, throws, or asks for what it fills.
  const void* find_or_pack(const OperatorCall& call, uint32_t input, const std::string& key, uint64_t bytes, heddle_prepack_fill fill,
                           void* user, std::string& error);

 private:
  using Key = std::tuple<const void*, std::string, uint64_t>;  // the constant's bytes, the kernel's words, how many bytes
  struct Pack {
    CallBytes bytes;
    bool filled = false;
    bool asked_for = false;  // by the function that fills it
  };
  std::map<Key, Pack> packs_;
};

}  // namespace heddle
