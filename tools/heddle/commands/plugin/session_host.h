// SessionHost: answers the calls of `plugin run` and `plugin check` like a session. Nested nets are sessions of their own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/session.h"
#include "operator_runner/call_host.h"

namespace heddle::tool {

// The nets that are passed to it must outlive it.
class SessionHost final : public CallHost {
 public:
  // `make_runtime` is called when the first subnet runs: it loads the plugins of `registry`. A run of a subnet with a trip above
  // `last_trip` is refused.
  SessionHost(std::shared_ptr<const RegistrySnapshot> registry, std::function<Result<Runtime>()> make_runtime,
              uint64_t last_trip = UINT64_MAX)
      : CallHost(std::move(registry)), make_runtime_(std::move(make_runtime)), last_trip_(last_trip) {}
  Status infer_subnet(const heddle_subnet* subnet, Views inputs, std::span<heddle_type* const> outputs) override;
  Status run_subnet(const heddle_subnet* subnet, uint64_t trip, Views inputs, std::span<heddle_tensor* const> outputs) override;

 private:
  Result<Session*> session_of(const Net& net, Views inputs);

  const std::function<Result<Runtime>()> make_runtime_;
  const uint64_t last_trip_;
  std::optional<Runtime> runtime_;
  std::map<std::pair<const Net*, std::string>, Session> sessions_;  // by net and the types of its inputs
  std::vector<Tensor> results_;
};

}  // namespace heddle::tool
