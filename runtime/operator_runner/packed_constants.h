// Packed constants of calls, by the constant and their key: shared by all nodes, as in a session.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "operator_runner/call_memory.h"

namespace heddle {

struct OperatorCall;

// The packed constants of calls that run one after the other.
class PackedConstants {
 public:
  bool empty() const { return packs_.empty(); }
  // Implements heddle_host::prepack; returns null, with the reason in `error`, if it is no constant, or `fill` fails, throws, or requests
  // what it fills.
  const void* find_or_pack(const OperatorCall& call, uint32_t input, const std::string& key, uint64_t bytes, heddle_prepack_fill fill,
                           void* user, std::string& error);

 private:
  using Key = std::tuple<const void*, std::string, uint64_t>;  // the constant's bytes, the kernel's key, the number of bytes
  struct Pack {
    CallBytes bytes;
    bool filled = false;
    bool asked_for = false;  // requested by the function that fills it
  };
  std::map<Key, Pack> packs_;
};

}  // namespace heddle
