// Copies between devices become nodes: each value lies in one place, and nodes that need it elsewhere read a Copy of it.
#include <fmt/format.h>

#include <map>

#include "device/device_manager.h"
#include "device/locations.h"
#include "edit/editor.h"
#include "transform/transform.h"

namespace heddle {
namespace {

class Copier {
 public:
  Copier(Editor& editor, const CompilationTarget& target)
      : editor_(editor), target_(target), locations_(editor.net()), node_count_(editor.graph().nodes.size()) {}

  Status run() {
    for (size_t i = 0; i < node_count_; ++i) {
      const NodeId id(i);
      std::vector<ValueId> inputs = editor_.node(id).inputs;
      bool changed = false;
      for (size_t k = 0; k < inputs.size(); ++k) {
        if (!inputs[k].valid()) continue;
        HEDDLE_TRY(const DeviceId wanted, wanted_at(id, k));
        if (locations_.of(inputs[k]) == wanted) continue;
        HEDDLE_TRY(inputs[k], copied(id, inputs[k], wanted));
        changed = true;
      }
      if (changed) editor_.set_inputs(id, std::move(inputs));
    }
    for (size_t o = 0; o < editor_.graph().outputs.size(); ++o) {
      const ValueId output = editor_.graph().outputs[o];
      const std::vector<DeviceId>& places = editor_.net().output_places;
      const DeviceId place = places.empty() ? host_device : places[o];
      if (locations_.of(output) == place) continue;
      HEDDLE_TRY(const ValueId copy, copied({}, output, place));
      editor_.set_output(o, copy);
    }
    return {};
  }

 private:
  // The net's own Copies between devices that do not reach each other read from the host.
  Result<DeviceId> wanted_at(NodeId id, size_t input) {
    const DeviceId wanted = locations_.wanted(id, input), here = locations_.of(id);
    if (!is_copy(editor_.node(id)) || here == host_device) return wanted;
    HEDDLE_TRY(const bool direct, reaches(here, wanted));
    return direct ? wanted : host_device;
  }

  // True if copies go straight from `source` to `place`.
  Result<bool> reaches(DeviceId place, DeviceId source) {
    if (place == host_device || source == host_device || place == source) return true;
    if (!target_.devices) return false;
    const auto [known, fresh] = reaches_.try_emplace({place, source}, false);
    if (!fresh) return known->second;
    HEDDLE_TRY(const std::shared_ptr<Device> to, opened(place));
    HEDDLE_TRY(const std::shared_ptr<Device> from, opened(source));
    return known->second = to->reaches(*from);
  }
  Result<std::shared_ptr<Device>> opened(DeviceId device) {
    return target_.devices->open(*editor_.net().registry, editor_.net().devices[device.index]);
  }

  // Returns `value` at `place`, for a node that runs at `before` (invalid: after everything).
  Result<ValueId> copied(NodeId before, ValueId value, DeviceId place) {
    if (const auto it = made_.find({value, place}); it != made_.end()) return it->second;
    ValueId source = value;
    HEDDLE_TRY(const bool direct, reaches(place, locations_.of(value)));
    if (!direct) {
      HEDDLE_TRY(source, copied(before, value, host_device));
    }
    const std::string device = editor_.net().devices[place.index];
    HEDDLE_TRY(const ValueId copy,
               editor_.add_node(before, "Copy", fmt::format("{}/copy to {}", editor_.graph()[value].name, device), {source}, {}, "heddle"));
    editor_.set_device(editor_.graph()[copy].producer, place);
    return made_[{value, place}] = copy;
  }

  Editor& editor_;
  const CompilationTarget& target_;
  const Locations locations_;  // of the nodes and values before anything was added
  const size_t node_count_;
  std::map<std::pair<ValueId, DeviceId>, ValueId> made_;
  std::map<std::pair<DeviceId, DeviceId>, bool> reaches_;  // by destination and source
};

}  // namespace

Result<TypedNet> insert_copies(TypedNet net, const CompilationTarget& target) {
  if (Locations(net).all_on_host()) return net;
  Editor editor(std::move(net));
  HEDDLE_CHECK(Copier(editor, target).run(), "while copies between devices were inserted");
  return editor.finish();
}

}  // namespace heddle
