// Structure: rules that every net must satisfy, whatever its operators mean. Checked when a net is read from a file and when it is written.
//
// Names: not empty, UTF-8 without zero bytes, unique among values, among nodes, among variables, among a node's attributes.
// Indices in range; every value defined exactly once; a node reads only what is defined before it (file order is program order);
// versions of a variable are 0..n in program order; declared types are possible; contents fit their types; limits hold.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/text/findings.h"
#include "base/text/limit_names.h"
#include "net/net.h"

namespace heddle {

// Which node output defines each value.
struct Origin {
  NodeId producer;
  uint32_t output = 0;
};

// Links that a file does not store because they follow from its other parts.
struct NetLinks {
  std::vector<Origin> origins;         // by value; invalid producer: no node
  std::vector<ValueId> first_version;  // by variable
  std::vector<ValueId> last_version;
};

// Checks `net` without its subnets; everything found goes to `findings`. `top`: not a subnet; its outputs must then be distinct,
// because they are fetched by name.
NetLinks check_structure(const Net& net, bool top, const Limits& limits, Findings& findings);

// check_structure, and when nothing was found sets Value::producer and output, the types of versions, Variable::first and last.
void link_net(Net& net, bool top, const Limits& limits, Findings& findings);

// Checks a net about to be written: check_structure of `net` and its subnets, the derived links, total limits.
Status check_whole_net(const Net& net, const Limits& limits);

// The number of nets that one file may hold.
constexpr size_t max_nets = 64;
// Checks that several nets have a distinct name each. Errors: duplicate_name, limit_exceeded, invalid_argument (there is none).
Status check_net_names(std::span<const Net* const> nets);
std::vector<const Net*> pointers_to(std::span<const Net> nets);
// Calls check_whole_net for each net, and checks their names.
Status check_whole_nets(std::span<const Net> nets, const Limits& limits);
// Returns the net of a file that holds one. Errors: invalid_argument, naming them, where there are several.
Result<Net> only_net(std::vector<Net> nets);

}  // namespace heddle
