#include "common/net_choice.h"

#include <fmt/format.h>

#include "base/text.h"

namespace heddle::tool {

void NetChoice::declare(CLI::App& app) {
  app.add_option("--net", name, "which net of a file that holds several")->type_name("NAME");
}

Result<Session> NetChoice::open(const Runtime& runtime, const std::string& file, const SessionOptions& options) const {
  HEDDLE_TRY(Session session, runtime.open(file, options));
  if (name.empty()) return session;
  return session.net(name);
}

Result<Net> NetChoice::load(const std::string& file, const LoadOptions& options) const {
  HEDDLE_TRY(std::vector<Net> nets, load_nets(file, options));
  if (name.empty() && nets.size() == 1) return std::move(nets[0]);
  std::vector<std::string> names, shown;
  for (Net& net : nets) {
    if (!name.empty() && net.name == name) return std::move(net);
    names.push_back(net.name);
    shown.push_back(quoted(net.name));
  }
  if (name.empty())
    return Status(Code::invalid_argument, fmt::format("{} holds {} nets: {}", quoted(file), nets.size(), join(shown, ", ")),
                  "choose one with --net NAME");
  return Status(Code::unknown_name, fmt::format("{} has no net {}", quoted(file), quoted(name)), suggestion(name, names));
}

}  // namespace heddle::tool
