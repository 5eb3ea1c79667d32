// Processes that find each other in a store (rendezvous/) and are connected by Gloo over TCP.
//
// A rendezvous is FORM or FORM,interface=NAME: FORM is one of rendezvous/job_store.h, NAME a network interface of this machine, as in
// "redis:10.0.0.1:6379/job,interface=eth1". Without one only processes of this machine are found: they listen on the loopback address.
// The network sees all bytes as they are, and a program that reaches a port is taken for a rank (docs/security.md).
#pragma once

#include <memory>
#include <string>

#include "shared/ranks/rank_connections.h"

namespace heddle::ranks {

using plugin::Status;

class GlooTransport final : public operators::RankTransport {
 public:
  explicit GlooTransport(const plugin::ResourceRequest&) {}
  // Ranks that could not be connected come together again, until the time of `place` is over: one may have ended, and another process be
  // its successor.
  Status connect(const operators::RankPlace& place, std::unique_ptr<operators::RankConnections>* connections) override;
};

}  // namespace heddle::ranks
