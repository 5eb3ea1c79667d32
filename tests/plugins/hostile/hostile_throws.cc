// Throws across the boundary while it is loaded, asked what it offers, or closed, a plugin for each of "entry", "initialize", "describe"
// and "shutdown"; or one that offers nothing and does not say why ("silent"), ends the process ("exit") or never returns ("stay"). Raw ABI:
// op.h would catch what it throws.
#include <unistd.h>

#include <stdexcept>
#include <string_view>

#include "../plugin_case.h"
#include "heddle/abi.h"

namespace {

const std::string_view where = test_plugin_case;

heddle_status initialize(const heddle_host*, const heddle_call*) {
  if (where == "initialize") throw 7;
  if (where == "exit") ::_exit(3);
  while (where == "stay") ::pause();
  return HEDDLE_OK;
}
heddle_status describe(const heddle_host*, const heddle_call*) {
  if (where == "describe") throw 7;
  return where == "silent" ? HEDDLE_ERROR_UNSUPPORTED : HEDDLE_OK;
}
void shutdown() {
  if (where == "shutdown") throw std::runtime_error("not now");
}

}  // namespace

extern "C" HEDDLE_EXPORT const heddle_plugin* heddle_plugin_query(const heddle_host*, const heddle_call*) {
  if (where == "entry") throw std::runtime_error("no tables today");
  static heddle_plugin plugin = {};
  plugin.struct_size = sizeof(plugin);
  plugin.abi_major = HEDDLE_ABI_MAJOR;
  plugin.abi_minor = HEDDLE_ABI_MINOR;
  plugin.abi_hash = HEDDLE_ABI_HASH;
  plugin.name = "hostile_throws";
  plugin.initialize = initialize;
  plugin.describe = describe;
  plugin.shutdown = shutdown;
  return &plugin;
}
