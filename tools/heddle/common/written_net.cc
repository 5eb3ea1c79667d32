#include "common/written_net.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/text/text.h"
#include "load/save.h"
#include "models/recipes.h"

namespace heddle::tool {

void report_net(const Net& net, const std::string& file, Report& report) {
  const int64_t parameters = models::parameter_count(net);
  report.json["net"] = {{"file", file},
                        {"operators", net.nodes.size()},
                        {"inputs", net.inputs.size()},
                        {"outputs", net.outputs.size()},
                        {"parameters", parameters}};
  report.say(fmt::format("{}: {} operators, {} parameters", quoted(file), net.nodes.size(), parameters));
}

void report_training_form(const Net& train, const Net& test, int64_t parameters, const std::string& file, Report& report) {
  report.json["net"] = {{"file", file},
                        {"operators", train.nodes.size()},
                        {"inputs", train.inputs.size()},
                        {"outputs", train.outputs.size()},
                        {"parameters", parameters}};
  report.say(fmt::format("{}: nets \"train\" of {} operators and \"test\" of {}, {} parameters", quoted(file), train.nodes.size(),
                         test.nodes.size(), parameters));
}

Status writes_net(FileRoles& roles, const std::string& output) {
  HEDDLE_CHECK(roles.writes("the net", output));
  return roles.writes("the weights of the net", weights_path(output));
}

Status check_net_writable(const std::string& output) {
  for (const std::filesystem::path& file : {std::filesystem::path(output), weights_path(output)})
    HEDDLE_CHECK(FileReplacement::create(file).status());
  return {};
}

}  // namespace heddle::tool
