// Every call of the public headers, ready to be repeated with one allocation failing. public_calls_test.cc compares the table with the
// headers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/session.h"
#include "heddle/training.h"
#include "load/temporary_folder.h"

namespace heddle::testing_memory {

// The objects of the calls: a runtime, nets that are opened there, and their outputs when no allocation fails.
struct World {
  World(std::string device, int threads);
  SessionOptions options() const;
  // Returns a session of "control": an If, a Loop and a step of late extents. Its plans and idle memory are dropped, so that it plans
  // again.
  Session control();
  // Returns the same for "line" and "train", which trains it.
  Session learning() const;
  std::vector<TensorView> control_inputs() const;
  std::vector<TensorView> line_inputs() const;
  // Returns whether the outputs of "control" are those of a run without failures.
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

// The status that a call has returned, and whether its value is right. The status is ok for calls that return plain values.
struct Answer {
  Status status;
  bool right = true;
};

using Call = std::function<Answer()>;

struct PublicCall {
  std::string name;     // "Session::prepare", as the headers have it
  std::string variant;  // which overload, or on what; empty: there is one
  bool plain = false;   // it can not return an error: without memory its value is empty, and the log has a line
  std::function<Call(const std::shared_ptr<World>&)> ready;  // prepares the call, on unused objects; the call can be repeated
  // A second code that the call may return: a plugin without memory for its own tables returns none.
  Code also = Code::out_of_memory;
};

const std::vector<PublicCall>& public_calls();

}  // namespace heddle::testing_memory
