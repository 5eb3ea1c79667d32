// CallerStream: a stream of the embedding program on which it produces what a run reads.
#pragma once

#include <string>

namespace heddle {

// `stream` is a stream that the program made with the vendor's functions (a cudaStream_t; for kind "sim" a sim_stream,
// plugins/sim/native.h) on the device whose full name is `device` ("cuda:0"). The program owns the stream and must not destroy it before
// every context that ran with the stream is destroyed. The CallerStream object is needed only until the run is over (RunOptions::streams).
struct CallerStream {
  std::string device;
  void* stream = nullptr;
};

}  // namespace heddle
