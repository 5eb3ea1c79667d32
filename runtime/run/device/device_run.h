// DeviceRun: the work of one context on devices, in three parts that its users call: the streams that it has, what is enqueued on them, and
// what they report. Belongs to one Execution.
#pragma once

#include <memory>

#include "compile/plan.h"
#include "heddle/status.h"
#include "run/device/device_streams.h"
#include "run/device/device_worker.h"
#include "run/device/stream_answers.h"

namespace heddle {

class DeviceRun {
 public:
  // `plan` must outlive it. Errors: out_of_memory, device_failed.
  static Result<std::unique_ptr<DeviceRun>> create(const Plan& plan) {
    std::unique_ptr<DeviceRun> run(new DeviceRun(plan));
    HEDDLE_CHECK(run->streams_.allocate());
    return run;
  }

  DeviceStreams& streams() { return streams_; }
  const DeviceStreams& streams() const { return streams_; }
  StreamAnswers& answers() { return answers_; }
  const StreamAnswers& answers() const { return answers_; }
  DeviceWorker& worker() { return worker_; }

  // Call it before each run. `observed`: each step waits until its work is done, or until `stops(user)` is true and the work has not
  // completed in time.
  void begin(bool observed, bool (*stops)(void* user), void* user) {
    streams_.begin(observed);
    answers_.begin(stops, user);
  }

 private:
  explicit DeviceRun(const Plan& plan) : streams_(plan), answers_(streams_), worker_(streams_, answers_) {}

  // Each part uses those above it.
  DeviceStreams streams_;
  StreamAnswers answers_;
  DeviceWorker worker_;
};

}  // namespace heddle
