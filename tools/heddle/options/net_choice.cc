#include "options/net_choice.h"

#include <fmt/format.h>

#include "base/text/text.h"
#include "common/standard_streams.h"

namespace heddle::tool {

void NetChoice::declare(CLI::App& app) {
  app.add_option("--net", name, "which net of a file that holds several")->type_name("NAME");
}

Result<std::vector<Net>> load_nets_of(const std::string& file, const LoadOptions& options) {
  if (!is_stream(file)) return load_nets(file, options);
  HEDDLE_TRY(const std::span<const std::byte> bytes, stream_bytes(file, options.limits.file_bytes, "file_bytes"));
  return load_nets_bytes(bytes, ".", options);
}

Result<Session> NetChoice::open(const Runtime& runtime, const std::string& file, const SessionOptions& options) const {
  const auto opened = [&]() -> Result<Session> {
    if (!is_stream(file)) return runtime.open(file, options);
    HEDDLE_TRY(const std::span<const std::byte> bytes, stream_bytes(file, options.limits.file_bytes, "file_bytes"));
    return runtime.open_bytes(bytes.data(), bytes.size(), ".", options);
  };
  HEDDLE_TRY(Session session, opened());
  if (name.empty()) return session;
  return session.net(name);
}

Result<std::vector<Net>> NetChoice::load_all(const std::string& file, const LoadOptions& options) const {
  HEDDLE_TRY(std::vector<Net> nets, load_nets_of(file, options));
  if (name.empty()) return nets;
  std::vector<std::string> names;
  for (Net& net : nets) {
    if (net.name == name) {
      std::vector<Net> chosen;
      chosen.push_back(std::move(net));
      return chosen;
    }
    names.push_back(net.name);
  }
  return Status(Code::unknown_name, fmt::format("{} has no net {}", quoted(file), quoted(name)), suggestion(name, names));
}

Result<Net> NetChoice::load(const std::string& file, const LoadOptions& options) const {
  HEDDLE_TRY(std::vector<Net> nets, load_all(file, options));
  if (nets.size() == 1) return std::move(nets[0]);
  std::vector<std::string> shown;
  for (const Net& net : nets) shown.push_back(quoted(net.name));
  return Status(Code::invalid_argument, fmt::format("{} holds {} nets: {}", quoted(file), nets.size(), join(shown, ", ")),
                "choose one with --net NAME");
}

}  // namespace heddle::tool
