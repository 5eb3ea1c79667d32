// TypedNet: a resolved net whose values all have a dtype and, where they can be known before running, extents.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/limits.h"
#include "net/net.h"

namespace heddle {

class RegistrySnapshot;

// The result of inference for one value.
struct TensorType {
  DType dtype = DType::none;
  Shape shape;                   // at the bound for bounded values; -1 extents for dynamic ones
  int bounded_axis = -1;         // extents along it are an upper bound; the true one is known after the producer ran
  bool dynamic = false;          // extents unknown and without a bound
  bool follows_bounded = false;  // computed from such a value: true extents are inferred again during the run
  // True extents may differ from `shape` during a run.
  bool late() const { return dynamic || bounded_axis >= 0 || follows_bounded; }
  int64_t byte_size() const { return dynamic ? 0 : byte_width(dtype) * shape.element_count(); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

struct TypedNet {
  Net net;
  std::vector<TensorType> types;                     // by ValueId
  std::vector<std::shared_ptr<const Blob>> known;    // by ValueId: content of constants and of small values inference followed; may be null
  std::shared_ptr<const RegistrySnapshot> registry;  // where schemas and kernels come from; keeps the plugins loaded
  std::vector<ValueId> shape_inputs;                 // net inputs whose content was used: part of the plan's key
  Limits limits;                                     // used by its inference; nodes that transforms add are held to them too
  // Full names by DeviceId, the host first: messages use them, and devices are opened by them. Set by placement; before it, and without it,
  // everything is on the host.
  std::vector<std::string> devices{"cpu:0"};
  // By input and by output of the net: the device where the caller provides or takes them. Empty: all on the host.
  std::vector<DeviceId> input_places, output_places;

  const TensorType& type(ValueId id) const { return types[id.index]; }
  const std::string& device_of(const Node& node) const { return devices[node.placed.index]; }
};

}  // namespace heddle
