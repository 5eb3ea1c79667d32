// The part of `heddle plugin check --device` that examines one operator.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/session.h"
#include "operator_runner/operator_runner.h"

namespace heddle::tool {

// Runs operators on a device too, and compares.
class DeviceExamination {
 public:
  DeviceExamination(Runtime runtime, std::string device) : runtime_(std::move(runtime)), device_(std::move(device)) {}

  // Runs the call as a net of one operator on the device, with nothing else to copy, and compares with `outputs`, those of the host: bit by
  // bit, except for random numbers. Inputs are fed, shape operands are constants. Empty: equal, or no plan puts such a call on the device;
  // else what is wrong.
  std::string examine(const OperatorSchema& schema, const OperatorCall& call, const std::vector<std::shared_ptr<const Blob>>& outputs);

  // Returns the outputs of the call on the device, run like this, in row-major order. None: no plan puts such a call on the device, and
  // `refusal` gives the reason.
  Result<std::optional<std::vector<Tensor>>> outputs(const OperatorSchema& schema, const OperatorCall& call);

  const std::string& device() const { return device_; }
  bool ran() const { return ran_; }
  // Why the last call was not put on the device.
  const std::string& refusal() const { return refusal_; }
  // The code of the plan's error; ok: the plan puts the call elsewhere.
  Code refusal_code() const { return refusal_code_; }

 private:
  Runtime runtime_;
  const std::string device_;
  bool ran_ = false;
  std::string refusal_;
  Code refusal_code_ = Code::ok;
};

}  // namespace heddle::tool
