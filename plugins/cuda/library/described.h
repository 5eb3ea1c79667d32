// Describes a device that is not present, and a table of NVIDIA's functions for it: plans are made with them, and nothing is ever run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/op.h"

namespace heddle::cuda {

struct Api;

// The properties that a plan reads of a device. All devices of a description are alike.
struct DeviceDescription {
  std::string name;
  int devices = 1;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  uint64_t memory_bytes = 0;
  int stream_priorities = 1;
  // The scratch budget for steps by the libraries. Only the libraries, on a device, tell how much an algorithm needs.
  uint64_t cublaslt_workspace_bytes = 0, cudnn_workspace_bytes = 0;
  std::string source, date;  // of the numbers above
};

// Reads a description from JSON with all the keys of plugins/cuda/devices/h200.json; without text, from that file. Errors: invalid, with
// the key.
plugin::Status read_description(std::string_view text, DeviceDescription* description);

// Fills in every function of the table, once for the process; the description must stay valid.
void fill(Api* api, const DeviceDescription& description);

}  // namespace heddle::cuda
