// CallerStream: a stream of the embedding program on which it produces what a run reads.
#pragma once

#include <string>

namespace heddle {

// `stream` is the vendor's own (a cudaStream_t; for kind "sim" a sim_stream, plugins/sim/native.h) on the device of the full name `device`
// ("cuda:0"). The program owns it and must keep it as long as the context that it was given to.
struct CallerStream {
  std::string device;
  void* stream = nullptr;
};

}  // namespace heddle
