// CommunicatorOptions: what a communicator is that the operators of a net name: which processes and devices work together, and how they
// find each other. A net has the name only, so that one file serves any number of processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

struct CommunicatorOptions {
  // The name, as the nets of the session give it in the attribute `communicator` of their operators. Empty: this stands for each name that
  // has no entry of its own.
  std::string name;
  int rank = 0;  // of this process, 0 to size - 1
  int size = 1;  // number of processes
  // The devices of this process that are members, in their order. Empty: SessionOptions::device alone.
  std::vector<std::string> devices;
  // How the processes find each other, in a form that the plugin documents which makes the communicator. Empty where `size` is 1.
  std::string rendezvous;
  // How long an operation may wait for its peers, in nanoseconds; more than 0.
  int64_t timeout_ns = 30'000'000'000;
};

}  // namespace heddle
