// The gloo plugin: connections between processes, for the collectives on the host (plugins/cpu/collective). It publishes the resource
// "rank.transport" (shared/ranks/rank_connections.h).
#include "connections/gloo_transport.h"

HEDDLE_PLUGIN("gloo", "0.1.0", plugin) {
  plugin.resource<heddle::ranks::GlooTransport, heddle::operators::RankTransport>("rank.transport", HEDDLE_SCOPE_RUNTIME, 1);
}
