// What `heddle plugin check --device` asks of one operator.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/session.h"
#include "operator_runner/operator_runner.h"

namespace heddle::tool {

// Where operators are run too, and how that went.
class DeviceExamination {
 public:
  DeviceExamination(Runtime runtime, std::string device) : runtime_(std::move(runtime)), device_(std::move(device)) {}

  // Runs the call as a net of one operator on the device, with nothing else to copy, and compares with `outputs`, those of the host: bit
  // by bit, but for random numbers. Inputs are fed, shape operands are constants. Empty: equal, or no plan puts
  // such a call on the device; else what is wrong.
  std::string examine(const OperatorSchema& schema, const OperatorCall& call, const std::vector<std::shared_ptr<const Blob>>& outputs);

  // What the call gives there, run so, in row-major order. None: no plan puts such a call on the device, and `refusal` says why.
  Result<std::optional<std::vector<Tensor>>> outputs(const OperatorSchema& schema, const OperatorCall& call);

  const std::string& device() const { return device_; }
  bool ran() const { return ran_; }
  // Why it did not, the last time.
  const std::string& refusal() const { return refusal_; }
  // That of the plan's error; ok: the plan puts it elsewhere.
  Code refusal_code() const { return refusal_code_; }

 private:
  Runtime runtime_;
  const std::string device_;
  bool ran_ = false;
  std::string refusal_;
  Code refusal_code_ = Code::ok;
};

}  // namespace heddle::tool
