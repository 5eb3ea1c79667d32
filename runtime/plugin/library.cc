#include "plugin/library.h"

#include <fmt/format.h>

#include <boost/dll/shared_library.hpp>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/text/option_names.h"
#include "base/text/text.h"
#include "base/threads/mutex.h"
#include "plugin/check_tables.h"
#include "plugin/elf_check.h"
#include "plugin/host.h"

namespace heddle {

// One open library of this process. All members are accessed under the lock of Library::Table.
struct Library::Opened {
  HostCall call;  // for query and initialize
  boost::dll::shared_library library;
  const heddle_plugin* plugin = nullptr;  // set once the ABI is known to match: then shutdown must be called
  int users = 0;

  Status load(const std::filesystem::path& path, const std::string& shown);
  Status shake_hands(const std::string& shown);
  Status initialize(const std::string& shown);
  std::string said() const;
  ~Opened();
};

// The open libraries, by dlopen's handle: the loader treats one file with two names as one library, too. Never destroyed, so that a static
// destructor of the embedding program may destroy a Library.
struct Library::Table {
  Mutex mutex;
  std::map<void*, std::unique_ptr<Opened>> opened HEDDLE_GUARDED_BY(mutex);
  static Table& instance() {
    static Table* table = new Table();
    return *table;
  }
};

namespace {

std::string abi_text(uint32_t major, uint32_t minor) {
  return fmt::format("{}.{}", major, minor);
}

std::string hash_text(uint64_t hash) {
  char text[19];
  std::snprintf(text, sizeof(text), "0x%016" PRIx64, hash);
  return text;
}

// The ABI number differs: the other fields may have another meaning.
Status number_mismatch(const std::string& shown, const heddle_plugin& plugin) {
  // Compared as one number, so that no comparison with a zero of ours is always false.
  const auto order = [](uint64_t major, uint64_t minor) { return major << 32 | minor; };
  const bool older = order(plugin.abi_major, plugin.abi_minor) < order(HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR);
  return {Code::plugin_abi,
          fmt::format("plugin {} was built for ABI {}, this host has ABI {}", shown, abi_text(plugin.abi_major, plugin.abi_minor),
                      abi_text(HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR)),
          older ? "rebuild the plugin with this host's headers" : "update Heddle, or rebuild the plugin with this host's headers"};
}

// The ABI number is equal, but the headers differ: a version between two releases.
Status layout_mismatch(const std::string& shown, const heddle_plugin& plugin) {
  const std::string number = abi_text(HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR);
  const std::string theirs =
      HEDDLE_HAS(heddle_plugin, &plugin, abi_hash) ? fmt::format("with hash {}", hash_text(plugin.abi_hash)) : "without a hash";
  return {Code::plugin_abi,
          fmt::format("plugin {} was built for another ABI {} ({}) than this host's (with hash {})", shown, number, theirs,
                      hash_text(HEDDLE_ABI_HASH)),
          "rebuild the plugin with this host's headers"};
}

}  // namespace

// Returns the plugin's own text after ": ", or nothing.
std::string Library::Opened::said() const {
  if (call.error.text.empty()) return {};
  return fmt::format(": {}", plugin_error(Code::plugin_invalid, HEDDLE_ERROR_INTERNAL, call.error).diagnostic().message);
}

Status Library::Opened::load(const std::filesystem::path& path, const std::string& shown) {
  try {
    // Lazy binding would turn a missing symbol into a crash in the middle of a run.
    library.load(path, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  } catch (const std::bad_alloc&) {
    throw;  // not an error of the plugin
  } catch (const std::exception& e) {
    return {Code::plugin_unreadable, fmt::format("plugin {} does not load: {}", shown, quoted(e.what())),
            "build it as a shared library for this machine, with everything it needs linked in"};
  }
  return {};
}

Status Library::Opened::shake_hands(const std::string& shown) {
  if (!library.has(HEDDLE_PLUGIN_QUERY_SYMBOL))
    return {Code::plugin_invalid, fmt::format("plugin {} exports no {}", shown, HEDDLE_PLUGIN_QUERY_SYMBOL),
            "define it with HEDDLE_PLUGIN and build it with heddle_add_plugin"};
  const heddle_plugin* answer = nullptr;
  try {
    answer = library.get<const heddle_plugin*(const heddle_host*, const heddle_call*)>(HEDDLE_PLUGIN_QUERY_SYMBOL)(host_table(), &call);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    return {Code::plugin_invalid, fmt::format("plugin {} threw an exception while it was asked for its tables", shown),
            "HEDDLE_PLUGIN catches them: use it, or catch them yourself"};
  }
  if (!answer || !HEDDLE_HAS(heddle_plugin, answer, abi_minor))
    return {Code::plugin_invalid, fmt::format("plugin {} answered with no table{}", shown, said()),
            "an allocation failed in it, or it refuses this host"};
  if (answer->abi_major != HEDDLE_ABI_MAJOR || answer->abi_minor != HEDDLE_ABI_MINOR) return number_mismatch(shown, *answer);
  if (!HEDDLE_HAS(heddle_plugin, answer, shutdown))
    return {Code::plugin_invalid, fmt::format("plugin {} answered with a table that is too short", shown),
            "set struct_size of heddle_plugin"};
  if (!HEDDLE_HAS(heddle_plugin, answer, abi_hash) || answer->abi_hash != HEDDLE_ABI_HASH) return layout_mismatch(shown, *answer);
  plugin = answer;
  return check_tables(*plugin).during(fmt::format("while loading plugin {}", shown));
}

Status Library::Opened::initialize(const std::string& shown) {
  if (!plugin->initialize) return {};
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = plugin->initialize(host_table(), &call);
  } catch (...) {
    call.error.text = "it threw an exception across the plugin boundary";
  }
  if (status == HEDDLE_OK) return {};
  return {Code::plugin_invalid, fmt::format("plugin {} failed to initialize (status {}){}", shown, status, said()),
          "mend what it names; the plugin was not loaded"};
}

Library::Opened::~Opened() {
  if (!plugin || !plugin->shutdown) return;
  try {
    plugin->shutdown();
  } catch (...) {
    constexpr std::string_view threw = "a plugin threw an exception out of shutdown; it is closed all the same";
    host_table()->log(HEDDLE_LOG_WARNING, threw.data(), threw.size());
  }
}

Result<std::unique_ptr<Library>> Library::open(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::canonical(path, error);
  const std::string shown = quoted(path.string());
  if (error)
    return Status(Code::plugin_unreadable, fmt::format("plugin {}: {}", shown, error.message()),
                  hint_with("check the path given with ", option_names::plugins));
  HEDDLE_CHECK(check_elf(absolute, shown));
  Table& table = Table::instance();
  const MutexLock lock(table.mutex);
  auto fresh = std::make_unique<Opened>();
  HEDDLE_CHECK(fresh->load(absolute, shown));
  std::unique_ptr<Opened>& slot = table.opened[fresh->library.native()];
  if (!slot) {
    Status status = fresh->shake_hands(shown);
    if (status.ok()) status = fresh->initialize(shown);
    if (!status.ok()) {
      table.opened.erase(fresh->library.native());
      return status;
    }
    slot = std::move(fresh);
  }
  ++slot->users;
  return std::unique_ptr<Library>(new Library(absolute, slot.get()));
}

Library::~Library() {
  Table& table = Table::instance();
  const MutexLock lock(table.mutex);
  if (--opened_->users == 0) table.opened.erase(opened_->library.native());
}

Library::Description Library::describe() const {
  const heddle_plugin& tables = plugin();
  if (!tables.describe) return {};
  HostCall call;
  try {
    const heddle_status status = tables.describe(host_table(), &call);
    if (status != HEDDLE_OK && call.error.text.empty()) return {false, "it gives no reason"};
    return {status == HEDDLE_OK, call.error.text.empty() ? std::string() : call.reason()};
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    return {false, "it threw an exception when it was asked what it offers"};
  }
}

const heddle_plugin& Library::plugin() const {
  return *opened_->plugin;
}

uint64_t Library::file_hash() const {
  std::ifstream file(path_, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return XXH64(bytes.data(), bytes.size(), 0);
}

}  // namespace heddle
