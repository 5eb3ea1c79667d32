// Comparison of ranks that work together. They must have these alike: the version of the library, the collectives of their plans and, if it
// was made for several ranks, the net. They compare a number, and only where it differs the texts of which it was made.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/resources.h"
#include "heddle/status.h"

namespace heddle {

// Returns the text of this rank: a line for the version, then PlanCommunicator::collectives, then PlanCommunicator::net.
std::string text_to_compare(const std::string& collectives, const std::string& net = {});

// Returns the part of it that ranks must have alike: the names of collectives may differ.
std::string without_names(const std::string& text);

// Gives `mine` to all ranks, and returns each rank's text. All ranks call it. Errors: as Resource::exchange; device_failed (a rank gives no
// text).
Result<std::vector<std::string>> exchange_texts(const Resource& object, const std::string& mine, size_t size, uint64_t deadline_ticks);

// Returns in what `theirs`, of another rank, differs from `mine`.
std::string text_difference(const std::string& mine, const std::string& theirs);

// Returns the first line by which the texts of two nets differ (net/print.h): "rank 1 has LINE, and rank 0 has LINE".
std::string net_difference(const std::string& whose, std::string_view net, const std::string& other_whose, std::string_view other_net);

// Returns whether the texts differ after the collectives, in the nets.
bool differ_in_nets(const std::string& mine, const std::string& theirs);

}  // namespace heddle
