// CallerStream: a stream of the embedding program's, on which it makes what a run reads.
#pragma once

#include <string>

namespace heddle {

// `stream` is the vendor's own (a cudaStream_t; of kind "sim" a sim_stream, plugins/sim/native.h) on the device of that full name
// ("cuda:0"). It stays its owner's, and stays as long as the context that it was given to.
struct CallerStream {
  std::string device;
  void* stream = nullptr;
};

}  // namespace heddle
