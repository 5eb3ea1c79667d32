#include "collective/communicator.h"

#include <stdexcept>

#include "collective/local_communicator.h"
#include "collective/process_communicator.h"
#include "families.h"

namespace heddle::cpu {

ChosenCommunicator::ChosenCommunicator(const ResourceRequest& request) {
  const std::string rendezvous = request.rendezvous();
  if (rendezvous.rfind("local:", 0) == 0 || request.size() == 1) {
    chosen_ = std::make_unique<LocalCommunicator>(request);
    return;
  }
  const std::string who = "communicator \"" + std::string(request.communicator()) + "\" of " + std::to_string(request.size()) + " ranks";
  if (rendezvous.empty())
    throw std::invalid_argument(who +
                                " has no rendezvous: sessions of one process give the same name, as in \"local:job\", and processes " +
                                "a place that all know, as in \"file:/shared/job\"");
  auto* const transport = request.need<operators::RankTransport>("rank.transport", 1);
  if (!transport) {
    // The host adds why: no plugin has it, or there is no memory.
    status_ = invalid(who + " has the rendezvous \"" + rendezvous + "\", which takes a plugin that connects processes (gloo.so)");
    return;
  }
  auto connected = std::make_unique<ProcessCommunicator>(request, *transport);
  status_ = connected->status();
  chosen_ = std::move(connected);
}

void add_communicator(Builder& plugin) {
  plugin.resource<ChosenCommunicator, operators::RankControl>("cpu.communicator", HEDDLE_SCOPE_COMMUNICATOR, 1);
}

}  // namespace heddle::cpu
