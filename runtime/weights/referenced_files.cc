#include "weights/referenced_files.h"

#include <set>

namespace heddle {
namespace {

void add_files(const Net& net, std::set<std::string>& files) {
  const auto add = [&](const Content& content) {
    if (!content.reference->file.empty()) files.insert(content.reference->file);
  };
  for (const Value& value : net.values) add(value.content);
  for (const Variable& variable : net.variables) add(variable.initial);
  for (const Node& node : net.nodes)
    for (const Attribute& attribute : node.attributes)
      if (const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value)) add_files(**subnet, files);
}

}  // namespace

std::vector<std::string> referenced_files(const Net& net) {
  std::set<std::string> files;
  add_files(net, files);
  return {files.begin(), files.end()};
}

}  // namespace heddle
