// Copies between devices become nodes: each value lies in one place, and nodes that need it elsewhere read a Copy of it.
#include <fmt/format.h>

#include <map>

#include "device/locations.h"
#include "edit/editor.h"
#include "transform/transform.h"

namespace heddle {
namespace {

class Copier {
 public:
  explicit Copier(Editor& editor) : editor_(editor), locations_(editor.net()), node_count_(editor.graph().nodes.size()) {}

  Status run() {
    for (size_t i = 0; i < node_count_; ++i) {
      const NodeId id(i);
      std::vector<ValueId> inputs = editor_.node(id).inputs;
      bool changed = false;
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (!inputs[k].valid() || locations_.of(inputs[k]) == locations_.wanted(id, k)) continue;
        HEDDLE_TRY(inputs[k], copied(id, inputs[k], locations_.wanted(id, k)));
        changed = true;
      }
      if (changed) editor_.set_inputs(id, std::move(inputs));
    }
    for (size_t o = 0; o < editor_.graph().outputs.size(); ++o) {
      const ValueId output = editor_.graph().outputs[o];
      if (locations_.of(output) == host_device) continue;
      HEDDLE_TRY(const ValueId copy, copied({}, output, host_device));
      editor_.set_output(o, copy);
    }
    return {};
  }

 private:
  // `value` at `place`, for a node that runs at `before` (invalid: after everything).
  Result<ValueId> copied(NodeId before, ValueId value, DeviceId place) {
    if (const auto it = made_.find({value, place}); it != made_.end()) return it->second;
    ValueId source = value;
    if (locations_.of(value) != host_device && place != host_device) {
      HEDDLE_TRY(source, copied(before, value, host_device));
    }
    const std::string device = editor_.net().devices[place.index];
    HEDDLE_TRY(const ValueId copy,
               editor_.add_node(before, "Copy", fmt::format("{}/copy to {}", editor_.graph()[value].name, device), {source}, {}, "heddle"));
    editor_.set_device(editor_.graph()[copy].producer, place);
    return made_[{value, place}] = copy;
  }

  Editor& editor_;
  const Locations locations_;  // of the nodes and values before anything was added
  const size_t node_count_;
  std::map<std::pair<ValueId, DeviceId>, ValueId> made_;
};

}  // namespace

Result<TypedNet> insert_copies(TypedNet net) {
  if (Locations(net).all_on_host()) return net;
  Editor editor(std::move(net));
  HEDDLE_CHECK(Copier(editor).run(), "while copies between devices were inserted");
  return editor.finish();
}

}  // namespace heddle
