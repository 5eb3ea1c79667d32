// A device that is not here, and a table of NVIDIA's functions for it: plans are made with them, and nothing is ever run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "heddle/op.h"

namespace heddle::cuda {

struct Api;

// What a plan asks of a device. All of a description are alike.
struct DeviceDescription {
  std::string name;
  int devices = 1;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  uint64_t memory_bytes = 0;
  int stream_priorities = 1;
  // What steps by the libraries get for scratch: a budget. Only the libraries, on a device, say how much an algorithm needs.
  uint64_t cublaslt_workspace_bytes = 0, cudnn_workspace_bytes = 0;
  std::string source, date;  // of the numbers
};

// From JSON with the keys of plugins/cuda/devices/h200.json, all of them; no text: that file. Errors: invalid, with the key.
plugin::Status read_description(std::string_view text, DeviceDescription* description);

// Every function of the table, once for the process; the description stays where it is.
void fill(Api* api, const DeviceDescription& description);

}  // namespace heddle::cuda
