// SessionHost: answers the calls of `plugin run` and `plugin check` as a session would. Nets in nets are sessions of their own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "alone/call_host.h"
#include "heddle/session.h"

namespace heddle::tool {

// The nets that it is asked about outlive it.
class SessionHost final : public CallHost {
 public:
  // `make_runtime` is asked when the first subnet runs: it loads what `registry` holds.
  SessionHost(std::shared_ptr<const RegistrySnapshot> registry, std::function<Result<Runtime>()> make_runtime)
      : CallHost(std::move(registry)), make_runtime_(std::move(make_runtime)) {}
  Status infer_subnet(const heddle_subnet* subnet, Views inputs, std::span<heddle_type* const> outputs) override;
  Status run_subnet(const heddle_subnet* subnet, uint64_t trip, Views inputs, std::span<heddle_tensor* const> outputs) override;

 private:
  Result<Session*> session_of(const Net& net, Views inputs);

  const std::function<Result<Runtime>()> make_runtime_;
  std::optional<Runtime> runtime_;
  std::map<std::pair<const Net*, std::string>, Session> sessions_;  // by net and the types of its inputs
  std::vector<Tensor> results_;
};

}  // namespace heddle::tool
