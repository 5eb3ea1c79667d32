#include "state/net_contents.h"

#include <fmt/format.h>

#include "base/text/findings.h"
#include "base/text/text.h"

namespace heddle {

Result<int64_t> set_contents(std::vector<Net>& nets, const ContentsByName& contents, std::string_view where) {
  Findings findings;
  int64_t count = 0;
  const std::string hint = fmt::format("take them from {} of these nets", where == "the session" ? "a session" : "a checkpoint");
  for (Net& net : nets)
    for (Variable& variable : net.variables) {
      if (!variable.replica_of.empty()) continue;
      const auto found = contents.find(variable.name);
      if (found == contents.end()) {
        findings.add(Status(Code::unknown_name, fmt::format("{} has no variable {}", where, quoted(variable.name)), hint).in_net(net.name));
        continue;
      }
      const std::shared_ptr<const Blob>& content = found->second;
      if (content->dtype != variable.type.dtype || variable.type.fixed_shape() != content->shape)
        findings.add(Status(content->dtype != variable.type.dtype ? Code::dtype_mismatch : Code::shape_mismatch,
                            fmt::format("variable {} is {}{} in {}, and another in the net", quoted(variable.name),
                                        to_string(content->dtype), content->shape.text(), where),
                            hint)
                         .in_net(net.name));
      variable.initial = {content, {}};
      ++count;
    }
  HEDDLE_CHECK(findings.status());
  return count;
}

}  // namespace heddle
