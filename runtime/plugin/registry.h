// Registry: the operators and kernels of all loaded plugins, keyed by domain, operator, version, device kind and dtypes.
//
// Loading is a transaction: a plugin is checked whole, then added whole or not at all. Loading and unloading lock; lookups read an
// immutable snapshot, so a snapshot taken for a compilation never changes under it.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/threads/mutex.h"
#include "heddle/status.h"
#include "plugin/rewrite_rule.h"
#include "plugin/schema.h"

namespace heddle {

// Immutable view of what is loaded. Keeps every plugin in it loaded.
class RegistrySnapshot {
 public:
  // The operator with the highest version not above `version` (0: the newest). Null when unknown.
  const OperatorSchema* find_operator(std::string_view domain, std::string_view name, int32_t version = 0) const;
  // Returns the kernel for `schema` on `device_kind` whose dtype sets include these dtypes, highest priority first; null when there is
  // none. `after`: the next best after that one (a kernel may answer "unsupported" when created). A kind's own kernels are followed by
  // those of the kind whose kernels it launches.
  const KernelEntry* find_kernel(const OperatorSchema& schema, std::string_view device_kind, std::span<const DType> inputs,
                                 std::span<const DType> outputs, const KernelEntry* after = nullptr) const;
  // Whether there is a kernel for any dtypes.
  bool has_kernel(const OperatorSchema& schema, std::string_view device_kind) const;
  // For a step on a device of that kind; resources of wider scopes are for all kinds.
  const heddle_resource* find_resource(std::string_view name, std::string_view device_kind,
                                       std::shared_ptr<const LoadedPlugin>* owner) const;
  const heddle_device_backend* find_device(std::string_view kind, std::shared_ptr<const LoadedPlugin>* owner) const;
  // Whether any kernel is asynchronous.
  bool has_asynchronous_kernels() const;
  // Whether any kernel of that kind of device has the flag (HEDDLE_KERNEL_*).
  bool has_kernels_with(std::string_view device_kind, uint32_t flag) const;
  // All names of `domain`'s operators, for "did you mean".
  std::vector<std::string> operator_names(std::string_view domain) const;
  std::vector<std::string> domains() const;
  const std::vector<std::shared_ptr<const LoadedPlugin>>& plugins() const { return plugins_; }
  std::shared_ptr<const LoadedPlugin> owner(const LoadedPlugin* plugin) const;
  // The rules of all plugins, in order of loading. Empty where the registry was made without a reader.
  const std::vector<std::shared_ptr<const RewriteRule>>& rewrite_rules() const { return rewrite_rules_; }

 private:
  friend class Registry;
  Status add(std::shared_ptr<const LoadedPlugin> plugin);
  struct Operator {
    std::vector<const OperatorSchema*> versions;                               // ascending
    std::unordered_map<std::string, std::vector<const KernelEntry*>> kernels;  // by device kind, highest priority first
  };
  const Operator* find(std::string_view domain, std::string_view name) const;
  // The kind whose kernels devices of `kind` launch; empty: none.
  std::string_view launched_kind(std::string_view kind) const;
  std::unordered_map<std::string, Operator> operators_;  // by domain + '\0' + name
  std::vector<std::shared_ptr<const LoadedPlugin>> plugins_;
  std::vector<std::shared_ptr<const RewriteRule>> rewrite_rules_;
};

// Thread-safe.
class Registry {
 public:
  // Without a reader rewrite rules stay unread: for inspecting a plugin's declarations, and for single operators. Users that compile nets
  // pass one (resolve/rule_reader.h).
  explicit Registry(RuleReader reader = {});
  // Loads plugins together, all of them or none, so that the rewrite rules of one may use operators of a later one; loading a file that is
  // loaded already changes nothing. Errors: those of Library::open; duplicate_registration naming both files; plugin_invalid naming the
  // operator; those of the reader, naming rule and file.
  Status load(std::span<const std::filesystem::path> files);
  Status load(const std::filesystem::path& file) { return load({&file, 1}); }
  // Removes the plugin from the registry; its library closes when no net and no plan uses it. Code::unknown_name when not loaded, busy when
  // kernels or rewrite rules of another plugin need its operators.
  Status unload(const std::string& plugin_name);
  std::shared_ptr<const RegistrySnapshot> snapshot() const;

 private:
  Status read_rules(const std::shared_ptr<RegistrySnapshot>& snapshot) const;
  const RuleReader reader_;
  mutable Mutex mutex_;
  std::shared_ptr<const RegistrySnapshot> snapshot_ HEDDLE_GUARDED_BY(mutex_);
};

// The *.so of a folder in name order. Errors: plugin_unreadable.
Result<std::vector<std::filesystem::path>> plugin_files(const std::filesystem::path& folder);

}  // namespace heddle
