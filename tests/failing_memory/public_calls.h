// Every call of the public headers, ready to be made again and again with some allocation failing. public_calls_test.cc compares the table
// with the headers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/session.h"
#include "heddle/training.h"
#include "load/temporary_folder.h"

namespace heddle::testing_memory {

// What the calls work with: a runtime, nets that are opened there, and what they compute when nothing fails.
struct World {
  World(std::string device, int threads);
  SessionOptions options() const;
  // A session of "control": an If, a Loop and a step of late extents. Its plans and idle memory are dropped: it plans anew.
  Session control();
  // The same of "line" and of "train", which learns it.
  Session learning() const;
  std::vector<TensorView> control_inputs() const;
  std::vector<TensorView> line_inputs() const;
  // Whether outputs of "control" are what they are when nothing fails.
  bool right(Context& context) const;
  bool right(const std::vector<Tensor>& results) const;

  const std::string device;
  const RuntimeOptions runtime_options;
  const testing::TemporaryFolder folder;
  Runtime runtime;
  Nets line, both;                 // "line" alone; with "train"
  std::string net_path;            // of "control", with its weights in a file beside it
  std::string variables_path;      // of `learned`
  std::vector<std::string> names;  // of the variables
  std::shared_ptr<Session> control_session, learned;
  std::vector<std::string> expected;  // bytes of the outputs of "control"
};

// What a call has answered, and whether its value is right. Of plain values: ok.
struct Answer {
  Status status;
  bool right = true;
};

using Call = std::function<Answer()>;

struct PublicCall {
  std::string name;     // "Session::prepare", as the headers have it
  std::string variant;  // which overload, or on what; empty: there is one
  bool plain = false;   // it has no place for an error: without memory its value is empty, and a line in the log says so
  std::function<Call(const std::shared_ptr<World>&)> ready;  // the call, on things that no call was made on; it can be made again
  // What it also answers: a plugin that has no memory for its own tables gives none.
  Code also = Code::out_of_memory;
};

const std::vector<PublicCall>& public_calls();

}  // namespace heddle::testing_memory
