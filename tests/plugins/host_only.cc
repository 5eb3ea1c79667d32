// An operator that no device has a kernel for: it is asynchronous, and devices have streams instead.
#include <cstring>

#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

class Through {
 public:
  Status start(const RunContext& c, Completion done) const {
    std::memcpy(c.outputs[0]->data, c.inputs[0]->data, c.inputs[0]->byte_size);
    done(Status());
    return {};
  }
};

}  // namespace

HEDDLE_PLUGIN("host_only", "1.0", plugin) {
  plugin.add(Op("Through", "host_only").doc("x, by the host").in("x").out("y", same_as("x")).cpu<Through>());
}
