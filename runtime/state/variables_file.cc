#include "state/variables_file.h"

#include <fmt/format.h>

#include <string_view>
#include <system_error>
#include <unordered_set>

#include "base/checksum.h"
#include "base/text/findings.h"
#include "base/text/text.h"
#include "weights/safetensors.h"

namespace heddle {
namespace {

Status check_type(const VariableStore& store, size_t i, const TensorEntry& entry) {
  if (entry.dtype == store.dtype(i) && entry.shape == store.shape(i)) return {};
  return {entry.dtype != store.dtype(i) ? Code::dtype_mismatch : Code::shape_mismatch,
          fmt::format("variable {} is {}{}, the file has {}{}", quoted(store.name(i)), to_string(store.dtype(i)), store.shape(i).text(),
                      entry.dtype == DType::none ? entry.file_dtype : to_string(entry.dtype), entry.shape.text()),
          "load what was saved of a session of the same nets"};
}

// Returns the tensor of the file by variable; null: the variable is not changed.
Result<std::vector<const TensorEntry*>> match(const VariableStore& store, const Safetensors& file, const LoadVariablesOptions& what) {
  Findings findings;
  std::vector<const TensorEntry*> entries;
  std::unordered_set<std::string_view> known;
  for (size_t i = 0; i < store.size(); ++i) {
    if (store.is_replica(i)) {
      entries.push_back(nullptr);
      continue;
    }
    known.insert(store.name(i));
    const TensorEntry* const entry = entries.emplace_back(file.find(store.name(i)));
    if (entry)
      findings.add(check_type(store, i, *entry));
    else if (!what.allow_missing)
      findings.add({Code::weights_missing, fmt::format("variable {} is not in the file", quoted(store.name(i))),
                    "load what was saved of a session of the same nets, or set LoadVariablesOptions::allow_missing"});
  }
  if (!what.allow_excess)
    for (const TensorEntry& entry : file.tensors())
      if (!known.contains(entry.name))
        findings.add({Code::unknown_name, fmt::format("the file has a tensor {}, which is no variable of the session", quoted(entry.name)),
                      "load what was saved of a session of the same nets, or set LoadVariablesOptions::allow_excess"});
  HEDDLE_CHECK(findings.status());
  return entries;
}

}  // namespace

// The user names this file: what it links to may lie anywhere, unlike the weights that a net names.
Result<Safetensors> open_variables_file(const std::filesystem::path& path, const Limits& limits) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error == std::errc::no_such_file_or_directory || error == std::errc::not_a_directory)
    return Status(Code::file_not_found, fmt::format("there is no file {}", quoted(path.native())), "look for a typing mistake");
  if (error) return Status(Code::file_unreadable, fmt::format("can't open {}: {}", quoted(path.native()), error.message()));
  return Safetensors::open(real.parent_path(), real.filename().native(), limits);
}

Result<std::shared_ptr<const Blob>> read_checked(const Safetensors& file, const TensorEntry& entry) {
  HEDDLE_TRY(std::shared_ptr<const Blob> blob, file.blob(entry, false));
  if (entry.checksum && *entry.checksum != checksum({blob->data, static_cast<size_t>(blob->bytes)}))
    return Status(Code::file_corrupt, fmt::format("tensor {} is not what was written (checksum)", quoted(entry.name)),
                  "the file was damaged: take another");
  return blob;
}

std::vector<TensorToWrite> tensors_to_write(const VariableStore& store, const std::vector<std::shared_ptr<const Blob>>& contents) {
  std::vector<TensorToWrite> tensors;
  for (size_t i = 0; i < contents.size(); ++i)
    if (contents[i]) tensors.push_back({store.name(i), contents[i]->dtype, contents[i]->shape, contents[i]->data});
  return tensors;
}

Result<std::vector<std::shared_ptr<const Blob>>> read_variables(const VariableStore& store, const Safetensors& file,
                                                                const LoadVariablesOptions& what) {
  HEDDLE_TRY(const std::vector<const TensorEntry*> entries, match(store, file, what));
  std::vector<std::shared_ptr<const Blob>> contents(entries.size());
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i]) {
      HEDDLE_TRY(contents[i], read_checked(file, *entries[i]));
    }
  return contents;
}

Status save_variables(const VariableStore& store, const std::filesystem::path& path, const Interruption& until) {
  HEDDLE_TRY(const std::vector<std::shared_ptr<const Blob>> contents, store.snapshot(until));
  return write_safetensors(path, tensors_to_write(store, contents)).status();
}

Status load_variables(VariableStore& store, const std::filesystem::path& path, const LoadVariablesOptions& what, const Limits& limits,
                      const Interruption& until) {
  const std::string doing = fmt::format("while loading variables from {}", quoted(path.native()));
  HEDDLE_TRY(const Safetensors file, open_variables_file(path, limits), doing);
  HEDDLE_TRY(const std::vector<std::shared_ptr<const Blob>> contents, read_variables(store, file, what), doing);
  return store.replace(contents, until);
}

}  // namespace heddle
