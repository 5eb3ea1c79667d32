// The choice of the parts of a data-parallel net that each replica has, and of those that are there once.
#pragma once

#include <string>
#include <vector>

#include "heddle/derivation.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// The device that operators of a replica name: its own, or the host where that has no kernel (base/device_name.h). Collectives stay on it.
std::string place_of_replica(const std::string& device);

struct ReplicaChoice {
  std::vector<std::string> devices;  // by replica; its collectives are there
  std::vector<char> single;          // by variable: there is one for all replicas, on the host
  std::vector<char> split;           // by value: an input of which each replica has its rows
  std::vector<char> of_batch;        // by value: it depends on the rows that a replica has
  bool has_peers = false;            // there are several replicas, here or of other ranks

  std::string place_of(size_t replica) const { return place_of_replica(devices[replica]); }
  // Whether the node is on the host in each replica: it says so, or reads a variable that is there once.
  bool is_on_host(const Net& net, const Node& node) const;
};

// A variable is single if that is asked for, or if all operators that read it are on the host. Errors: unknown_name, invalid_argument.
Result<ReplicaChoice> choose_replicas(const Net& net, const DataParallelOptions& options);

}  // namespace heddle
