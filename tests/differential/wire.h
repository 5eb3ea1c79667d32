// The protocol between fuzz.py and the driver: numbers of this machine, lengths before the data that they count.
//
//   request:  u32 model bytes, the model; u32 inputs, each: i32 dtype (heddle_dtype), i32 rank, i64 extents, the bytes
//   answer:   u32 0; u32 outputs, each as an input
//             u32 1; u32 bytes of the stage ("import", "open", "run"), the stage; the same of the code and of the text of the error
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "heddle/session.h"

namespace heddle::differential {

struct Request {
  std::string model;
  std::vector<Tensor> inputs;
};

// Returns nullopt at the end of the stream; ends the process if the stream ends within a request.
std::optional<Request> read_request(std::FILE* in);

void write_results(std::FILE* out, const std::vector<Tensor>& results);
void write_error(std::FILE* out, const std::string& stage, const Status& status);

}  // namespace heddle::differential
