// Distinct index types: a NodeId can not be passed where a ValueId is meant. 32 bits: a net has fewer than 2^32 of each.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace heddle {

template <class Tag>
struct Id {
  uint32_t index = UINT32_MAX;
  constexpr Id() = default;
  constexpr explicit Id(size_t i) : index(static_cast<uint32_t>(i)) {}
  constexpr bool valid() const { return index != UINT32_MAX; }
  friend constexpr auto operator<=>(Id, Id) = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 takes its own 0 for ours
};

using NodeId = Id<struct NodeTag>;
using ValueId = Id<struct ValueTag>;
using VariableId = Id<struct VariableTag>;
using StepId = Id<struct StepTag>;
using BufferId = Id<struct BufferTag>;
// A place where something runs or lies: an index into TypedNet::devices.
using DeviceId = Id<struct DeviceTag>;
inline constexpr DeviceId host_device{0};

}  // namespace heddle

template <class Tag>
struct std::hash<heddle::Id<Tag>> {
  size_t operator()(heddle::Id<Tag> id) const noexcept { return id.index; }
};
