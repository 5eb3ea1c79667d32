// heddle plugin new NAME: a project that builds, passes `plugin check` and can be used by `run` as it is.
#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "commands/plugin/plugin_commands.h"

namespace heddle::tool {
namespace {

constexpr const char* build_file = R"(cmake_minimum_required(VERSION 3.25)
project(@NAME@ LANGUAGES CXX)
find_package(heddle REQUIRED)
heddle_add_plugin(@NAME@ @NAME@.cc)
)";

constexpr const char* source_file = R"(// The operators of plugin @NAME@.
#include <heddle/op.h>
using namespace heddle::plugin;

struct Factor {
  explicit Factor(const Attributes& attributes) : value(static_cast<float>(attributes.f("factor"))) {}
  float value;
};

// y[i] = factor * x[i]
static Status scale(In<float> x, const Factor& factor, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = factor.value * x[i];
  return {};
}

HEDDLE_PLUGIN("@NAME@", "0.1.0", plugin) {
  plugin.add(Op("Scale", "@NAME@")
                 .doc("y = factor * x, any shape")
                 .in("x", dtypes<float>())
                 .out("y", same_as("x"))
                 .attribute("factor", 1.0)
                 .in_place("y", "x")
                 .gradient("Scale", {"dy"}, {"dx"})
                 .cpu<scale>()
                 .elementwise());
}
)";

constexpr const char* readme_file = R"(# @NAME@

    cmake -B build -S . && cmake --build build
    heddle plugin check build/@NAME@.so
    heddle plugin run @NAME@::Scale --plugin build/@NAME@.so --shape 2x3
)";

bool is_name(const std::string& name) {
  if (name.empty() || name.size() > 64 || std::isdigit(static_cast<unsigned char>(name[0]))) return false;
  return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
}

Status write_from(const std::filesystem::path& file, std::string text, const std::string& name) {
  for (size_t at = text.find("@NAME@"); at != std::string::npos; at = text.find("@NAME@")) text.replace(at, 6, name);
  HEDDLE_TRY(FileReplacement out, FileReplacement::create(file));
  HEDDLE_CHECK(out.write(text));
  return out.commit();
}

Status write_project(const std::string& name, Report& report) {
  if (!is_name(name))
    return {Code::invalid_argument, fmt::format("{} is no name for a plugin", quoted(name)),
            "use letters, digits and _, beginning with a letter"};
  std::error_code error;
  if (std::filesystem::exists(name, error))
    return {Code::invalid_argument, fmt::format("{} exists already", quoted(name)), "choose another name or another folder"};
  if (!std::filesystem::create_directory(name, error)) return {Code::file_unwritable, fmt::format("{}: {}", quoted(name), error.message())};
  const std::filesystem::path folder(name);
  HEDDLE_CHECK(write_from(folder / "CMakeLists.txt", build_file, name));
  HEDDLE_CHECK(write_from(folder / (name + ".cc"), source_file, name));
  HEDDLE_CHECK(write_from(folder / "README.md", readme_file, name));
  report.json["files"] = {name + "/CMakeLists.txt", name + "/" + name + ".cc", name + "/README.md"};
  report.say(fmt::format("wrote {0}/: build it with cmake -B {0}/build -S {0} && cmake --build {0}/build", name));
  return {};
}

}  // namespace

Run declare_plugin_new(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  app.add_option("name", *name, "of the plugin and its folder")->required()->type_name("NAME");
  return [name](Report& report) { return report.finish_with(write_project(*name, report)); };
}

}  // namespace heddle::tool
