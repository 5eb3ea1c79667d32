// CommunicatorOptions describes a communicator whose name the operators of a net give: which sessions and devices work together in it, and
// how the sessions, its ranks, find each other. A net contains only the name of a communicator, so that any number of ranks can run the same
// file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

struct CommunicatorOptions {
  // The name, as the nets of the session give it in the attribute `communicator` of their operators. Empty: these
  // options apply to each name without an entry of its own; each such name is a separate communicator.
  std::string name;
  int rank = 0;  // of this session, 0 to size - 1
  int size = 1;  // number of sessions that work together
  // The devices of this session that are members; the plugin gets them in this order. Empty: those on which the net that uses it first has
  // collectives, ascending, or SessionOptions::device if it has none on devices.
  std::vector<std::string> devices;
  // How the sessions find each other, in the form that is documented by the plugin that makes the communicator. Empty where `size` is 1.
  std::string rendezvous;
  // How long an operation may wait for its peers, in nanoseconds; more than 0.
  int64_t timeout_ns = 30'000'000'000;
};

}  // namespace heddle
