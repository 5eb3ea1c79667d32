#include "plugin/search.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>

namespace heddle {
namespace {

// The folder of the library (or program) that this code is in; empty: unknown.
std::filesystem::path own_folder() {
  Dl_info info = {};
  link_map* map = nullptr;
  if (::dladdr1(reinterpret_cast<const void*>(&own_folder), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || !map) return {};
  // The program itself has no name in the link map, and argv[0] may be anything.
  const char* const file = map->l_name && *map->l_name ? map->l_name : "/proc/self/exe";
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(file, error);
  return error ? std::filesystem::path() : whole.parent_path();
}

// The folder with the plugins that come with Heddle: set by the environment, or beside the library, installed or in a build tree.
std::filesystem::path default_plugin_folder() {
  if (const char* named = std::getenv("HEDDLE_PLUGIN_DIR")) return named;
  const std::filesystem::path here = own_folder();
  if (here.empty()) return {};  // relative paths would search the working directory, which others may be able to write
  std::error_code error;
  for (const char* candidate : {"heddle/plugins", "../" HEDDLE_PLUGIN_INSTALL_DIR, "../lib/heddle/plugins"})
    if (std::filesystem::is_directory(here / candidate, error)) return here / candidate;
  return {};
}

}  // namespace

// Loaded together: rewrite rules may use operators of any plugin.
Status load_plugins(Registry& registry, const RuntimeOptions& options) {
  std::vector<std::filesystem::path> files(options.plugins.begin(), options.plugins.end());
  std::vector<std::filesystem::path> folders(options.plugin_folders.begin(), options.plugin_folders.end());
  if (options.default_plugins)
    if (std::filesystem::path folder = default_plugin_folder(); !folder.empty()) folders.push_back(std::move(folder));
  for (const std::filesystem::path& folder : folders) {
    HEDDLE_TRY(const std::vector<std::filesystem::path> found, plugin_files(folder));
    files.insert(files.end(), found.begin(), found.end());
  }
  return registry.load(files);
}

}  // namespace heddle
