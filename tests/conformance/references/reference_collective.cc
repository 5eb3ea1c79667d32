// Collectives of one participant: its tensors are unchanged. tests/collectives has those of several.
#include "conformance/cases/movement.h"

namespace heddle::conformance {

namespace reference_collective {
namespace {

// `attributes`: those beside the communicator. With `size`, which says how many participants there are, tensors have rows.
Row alone(const std::string& type, const std::string& attributes = "") {
  const std::string world = "communicator=\"world\"" + attributes;
  const bool size = attributes.find("size") != std::string::npos;
  Row row = {.type = type,
             .reference =
                 [](const Call& c) {
                   std::vector<Numbers> results;
                   for (size_t i = 0; c.has(i); ++i) results.push_back(c[i]);
                   return results;
                 },
             .cases = {},
             .domain = "heddle",
             .without = {takes_no_steps}};
  const auto add = [&](Kind kind, const std::string& inputs, const std::string& outputs) {
    row.cases.push_back({kind, inputs + "; " + world + " -> " + outputs});
  };
  if (!size) add(Kind::odd, "T[]", "-");
  add(Kind::odd, "T[1]", "-");
  add(Kind::odd, "T[3,5,17]", "-");
  add(Kind::odd, "T[1023], T[1025]", "-, -");
  add(Kind::empty, "T[0,3]", "-");
  add(Kind::empty, "T[3,0], T[2]", "-, -");
  add(Kind::broadcast, "T[3,7], T[5], T[2,2,2]", "-, -, -");
  add(Kind::rank, "T[1,2,1,4,1,2,1,3]", "-");
  add(Kind::large, "T[301,357]", "-");
  if (type.find("Reduce") != std::string::npos)
    for (const std::string reduction : {"mean", "min", "max", "prod"})
      row.cases.push_back({Kind::odd, "T[5]; " + world + ", reduction=\"" + reduction + "\" -> -"});
  row.one_tile = true;
  return row;
}

}  // namespace
}  // namespace reference_collective

std::vector<Row> collective_rows() {
  using namespace reference_collective;
  return {alone("AllReduce"),
          alone("Reduce", ", root=0"),
          alone("Broadcast", ", root=0"),
          alone("Barrier"),
          alone("AllGather", ", size=1"),
          alone("ReduceScatter", ", size=1"),
          alone("AllToAll", ", size=1")};
}

}  // namespace heddle::conformance
