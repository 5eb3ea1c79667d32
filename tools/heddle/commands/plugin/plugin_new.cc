// heddle plugin new NAME: a project that builds, passes `plugin check` and can be used by `run` without changes.
#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "base/text/text.h"
#include "commands/plugin/plugin_commands.h"
#include "commands/plugin/project_template.h"

namespace heddle::tool {
namespace {

bool is_name(const std::string& name) {
  if (name.empty() || name.size() > 64 || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
}

// Checks that nothing that Heddle brings is called so: two plugins of one name, or a plugin like a kind of device, are taken for each
// other.
Status check_is_free(const std::string& name, const Report& report) {
  std::string taken = name == "heddle" || name == "runtime" || name == "onnx" ? "Heddle's own parts" : "";
  HEDDLE_TRY(const Runtime runtime, make_runtime(report.common));
  for (const PluginInfo& plugin : runtime.plugins())
    if (plugin.name == name) taken = fmt::format("the plugin {}", quoted(plugin.path));
  for (const char* const kind : {"cpu", "sim", "cuda", "nccl", "gloo"})  // also where they were not built
    if (name == kind && taken.empty()) taken = "a plugin of Heddle's";
  if (taken.empty()) return {};
  return {Code::invalid_argument, fmt::format("{} is the name of {}", quoted(name), taken), fmt::format("choose another: my_{}", name)};
}

Status write_text(const std::filesystem::path& file, const std::string& text) {
  HEDDLE_TRY(FileReplacement out, FileReplacement::create(file));
  HEDDLE_CHECK(out.write(text));
  return out.commit();
}

Status write_project(const std::string& name, bool cuda, Report& report) {
  if (!is_name(name))
    return {Code::invalid_argument, fmt::format("{} is no name for a plugin", quoted(name)),
            "use letters, digits and _, beginning with a letter"};
  HEDDLE_CHECK(check_is_free(name, report));
  std::error_code error;
  if (std::filesystem::exists(name, error))
    return {Code::invalid_argument, fmt::format("{} exists already", quoted(name)), "choose another name or another folder"};
  if (!std::filesystem::create_directory(name, error)) return {Code::file_unwritable, fmt::format("{}: {}", quoted(name), error.message())};
  Json files = Json::array();
  for (const auto& [file, text] : project_template(name, cuda)) {
    HEDDLE_CHECK(write_text(std::filesystem::path(name) / file, text));
    files.push_back(name + "/" + file);
  }
  report.json["files"] = files;
  report.say(fmt::format("wrote {0}/: build it with cmake -B {0}/build -S {0} && cmake --build {0}/build", name));
  return {};
}

}  // namespace

Run declare_plugin_new(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto cuda = std::make_shared<bool>(false);
  app.add_option("name", *name, "of the plugin and its folder")->required()->type_name("NAME");
  app.add_flag("--cuda", *cuda, "with a kernel for NVIDIA's GPUs, built where there is nvcc");
  return [name, cuda](Report& report) { return report.finish_with(write_project(*name, *cuda, report)); };
}

}  // namespace heddle::tool
