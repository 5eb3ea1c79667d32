#include "connections/gloo_transport.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include "connections/emulated_link.h"
#include "connections/gloo_connections.h"
#include "rendezvous/job_store.h"
#include "rendezvous/meeting.h"

namespace heddle::ranks {
namespace {

using operators::RankClock;

// How long the ranks that have met may take to connect, before they meet again: one of them may have ended since.
std::chrono::milliseconds time_to_connect(int32_t ranks) {
  return std::chrono::milliseconds(3000 + 20 * ranks);
}

// Waits before the ranks meet again: those that can not connect at once would make attempts as fast as the store takes them.
void pause_between(const rendezvous::Patience& patience, std::chrono::milliseconds pause) {
  const rendezvous::Patience for_pause = {std::min(patience.deadline, RankClock::now() + pause), patience.cancelled};
  rendezvous::Pauses pauses(for_pause);
  while (pauses.pause()) {
  }
}

// For tests: HEDDLE_GLOO_LINK says which link to emulate.
Status emulate_link(std::unique_ptr<operators::RankConnections>* connections) {
  const char* const link = std::getenv("HEDDLE_GLOO_LINK");
  if (!link) return {};
  LinkSettings settings;
  HEDDLE_PLUGIN_CHECK(parse_link(link, &settings));
  *connections = std::make_unique<EmulatedLink>(std::move(*connections), settings);
  return {};
}

Status connect_ranks(const operators::RankPlace& place, std::unique_ptr<operators::RankConnections>* connections) {
  constexpr std::string_view marks = ",interface=";
  const size_t at = place.rendezvous.rfind(marks);
  const std::string form = place.rendezvous.substr(0, at);
  const std::string interface = at == std::string::npos ? std::string() : place.rendezvous.substr(at + marks.size());
  std::shared_ptr<rendezvous::Store> store;
  {
    std::unique_ptr<rendezvous::Store> made;
    HEDDLE_PLUGIN_CHECK(rendezvous::make_store(form, place.communicator, place.rank, place.size, &made));
    store = std::move(made);
  }
  rendezvous::Meeting meeting(store.get(), place.rank, place.size);
  const rendezvous::Patience patience = {place.until, place.cancelled};
  constexpr std::chrono::milliseconds longest_pause(1000);
  Status last;
  for (std::chrono::milliseconds pause(20);; pause = std::min(2 * pause, longest_pause)) {
    auto made = std::make_unique<GlooConnections>(place.rank, place.size, store);
    std::string addresses;
    HEDDLE_PLUGIN_CHECK(made->listen(interface, &addresses));
    rendezvous::Joined joined;
    Status status = meeting.next(addresses, patience, &joined);
    if (!status.ok() && !last.ok() && status.code == HEDDLE_ERROR_DEVICE) status.text += "; before that, " + last.text;
    if (!status.ok()) return made->close(), status;  // all at once: its end would close one after the other
    const RankClock::time_point until = std::min(place.until, RankClock::now() + time_to_connect(place.size));
    last = made->connect(joined.attempt, joined.payloads, until, place.cancelled);
    if (last.ok()) return *connections = std::move(made), emulate_link(connections);
    if (last.code == HEDDLE_ERROR_CANCELLED) return last;
    if (interface.empty() && last.code == HEDDLE_ERROR_DEVICE)
      last.text += "; ranks connect by loopback, unless a network is named (--interface of heddle train, ,interface=NAME in a rendezvous)";
    if (RankClock::now() >= place.until) return last;
    made.reset();
    pause_between(patience, pause);
  }
}

}  // namespace

Status GlooTransport::connect(const operators::RankPlace& place, std::unique_ptr<operators::RankConnections>* connections) {
  try {
    return connect_ranks(place, connections);
  } catch (const std::exception& error) {
    return {HEDDLE_ERROR_DEVICE, std::string("the ranks could not be connected: ") + error.what()};
  }
}

}  // namespace heddle::ranks
