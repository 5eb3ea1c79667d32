#include "state/checkpoint_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>

#include "base/checksum.h"
#include "base/exceptions.h"
#include "base/file.h"
#include "base/library_version.h"
#include "base/text/text.h"
#include "state/variables_file.h"
#include "weights/safetensors.h"

namespace heddle {
namespace {

constexpr std::string_view prefix = "heddle.checkpoint.", mean_prefix = "heddle.checkpoint.mean.", file_prefix = "step-",
                           extension = ".safetensors", format = "1";
constexpr std::string_view last_batch_names[] = {"drop", "keep", "pad"};  // by LastBatch
constexpr int digits = 9;                                                 // of a step in a file's name, so that names sort as numbers do

std::string key(std::string_view name) {
  return fmt::format("{}{}", prefix, name);
}

// The checksum of a file as a whole: of all that its header says, but for where the tensors lie.
class HeaderChecksum {
 public:
  void add(std::string_view text) {
    sum_.add(std::as_bytes(std::span(text.data(), text.size())));
    sum_.add(std::as_bytes(std::span("", 1)));  // so that no two lists of texts look the same
  }
  void add_tensor(std::string_view name, DType dtype, const Shape& shape, uint64_t checksum) {
    add(name);
    add(to_string(dtype));
    add(shape.text());
    add(hex(checksum));
  }
  std::string text() const { return hex(sum_.value()); }

 private:
  RunningChecksum sum_;
};

Status damaged(const std::string& what) {
  return {Code::file_corrupt, what, "the file was damaged: take another"};
}

// Returns the metadata of that name. Errors: file_corrupt.
Result<std::string_view> text_of(const TextPairs& pairs, std::string_view name) {
  for (const auto& [pair_key, value] : pairs)
    if (pair_key.starts_with(prefix) && std::string_view(pair_key).substr(prefix.size()) == name) return std::string_view(value);
  return damaged(fmt::format("the checkpoint does not say its {}", name));
}

template <class Number>
Status read_number(const TextPairs& pairs, std::string_view name, Number* number) {
  HEDDLE_TRY(const std::string_view text, text_of(pairs, name));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (error == std::errc() && end == text.data() + text.size()) return {};
  return damaged(fmt::format("the checkpoint's {} is {}, which is no number", name, quoted(text)));
}

Status check_header(const Safetensors& file) {
  HeaderChecksum sum;
  for (const auto& [name, value] : file.metadata()) {
    if (name == key("checksum")) continue;
    sum.add(name);
    sum.add(value);
  }
  std::vector<const TensorEntry*> by_name;
  for (const TensorEntry& entry : file.tensors()) {
    if (!entry.checksum) return damaged(fmt::format("tensor {} of the checkpoint has no checksum", quoted(entry.name)));
    by_name.push_back(&entry);
  }
  std::sort(by_name.begin(), by_name.end(), [](const TensorEntry* a, const TensorEntry* b) { return a->name < b->name; });
  for (const TensorEntry* const entry : by_name) sum.add_tensor(entry->name, entry->dtype, entry->shape, *entry->checksum);
  HEDDLE_TRY(const std::string_view said, text_of(file.metadata(), "checksum"));
  return said == sum.text() ? Status() : damaged("the header of the checkpoint is not what was written (checksum)");
}

Status check_format(const TextPairs& pairs) {
  const auto written = text_of(pairs, "format");
  if (!written.ok()) return Status(Code::invalid_argument, "the file is no checkpoint", "load_variables() reads files of variables alone");
  if (*written != format)
    return Status(Code::file_version,
                  fmt::format("the checkpoint is of format {}, this is Heddle {}, which reads format {}", quoted(*written),
                              library_version(), format),
                  "read it with the Heddle that wrote it");
  return {};
}

Result<CheckpointInfo> info_of(const Safetensors& file, const std::string& path) {
  HEDDLE_CHECK(check_format(file.metadata()));
  HEDDLE_CHECK(check_header(file));
  return checkpoint_info_of(file.metadata(), path);
}

}  // namespace

std::string_view to_string(LastBatch last_batch) {
  return last_batch_names[static_cast<size_t>(last_batch)];
}

TextPairs texts_of(const CheckpointInfo& info) {
  TextPairs pairs = {{key("format"), std::string(format)},
                     {key("version"), info.version},
                     {key("step"), fmt::to_string(info.step)},
                     {key("loss"), shortest(info.loss)},
                     {key("best"), info.best},
                     {key("best_step"), fmt::to_string(info.best_step)},
                     {key("best_mean"), shortest(info.best_mean)},
                     {key("evaluations_since_best"), fmt::to_string(info.evaluations_since_best)},
                     {key("seed"), fmt::to_string(info.seed)},
                     {key("samples"), fmt::to_string(info.samples)},
                     {key("batch"), fmt::to_string(info.batch)},
                     {key("last_batch"), std::string(to_string(info.last_batch))},
                     {key("shuffle"), info.shuffles ? "yes" : "no"},
                     {key("data"), info.data},
                     {key("net"), info.net}};
  for (const auto& [name, value] : info.means) pairs.emplace_back(fmt::format("{}{}", mean_prefix, name), shortest(value));
  return pairs;
}

Result<CheckpointInfo> checkpoint_info_of(const TextPairs& pairs, const std::string& path) {
  HEDDLE_CHECK(check_format(pairs));
  CheckpointInfo info;
  info.path = path;
  HEDDLE_TRY(info.version, text_of(pairs, "version"));
  HEDDLE_TRY(info.net, text_of(pairs, "net"));
  if (const auto data = text_of(pairs, "data"); data.ok()) info.data = *data;  // early ones lack it
  HEDDLE_CHECK(read_number(pairs, "step", &info.step));
  HEDDLE_CHECK(read_number(pairs, "loss", &info.loss));
  HEDDLE_TRY(info.best, text_of(pairs, "best"));
  HEDDLE_CHECK(read_number(pairs, "best_step", &info.best_step));
  HEDDLE_CHECK(read_number(pairs, "best_mean", &info.best_mean));
  HEDDLE_CHECK(read_number(pairs, "evaluations_since_best", &info.evaluations_since_best));
  HEDDLE_CHECK(read_number(pairs, "seed", &info.seed));
  HEDDLE_CHECK(read_number(pairs, "samples", &info.samples));
  HEDDLE_CHECK(read_number(pairs, "batch", &info.batch));
  const bool in_range = info.step >= 0 && info.step < INT64_MAX && info.best_step >= -1 && info.best_step <= info.step &&
                        info.evaluations_since_best >= 0 && info.evaluations_since_best <= info.step && info.samples >= 1 &&
                        info.batch >= 1;
  if (!in_range) return damaged("the checkpoint has a number that is out of range");
  HEDDLE_TRY(const std::string_view last_batch, text_of(pairs, "last_batch"));
  HEDDLE_TRY(const std::string_view shuffle, text_of(pairs, "shuffle"));
  const auto* const found = std::find(std::begin(last_batch_names), std::end(last_batch_names), last_batch);
  if (found == std::end(last_batch_names)) return damaged(fmt::format("the checkpoint's last_batch is {}", quoted(last_batch)));
  info.last_batch = static_cast<LastBatch>(found - std::begin(last_batch_names));
  info.shuffles = shuffle == "yes";
  for (const auto& [name, text] : pairs)
    if (name.starts_with(mean_prefix)) {
      double value = 0;
      HEDDLE_CHECK(read_number(pairs, std::string_view(name).substr(prefix.size()), &value));
      info.means.emplace_back(name.substr(mean_prefix.size()), value);
    }
  return info;
}

std::string checkpoint_name(int64_t step) {
  return fmt::format("{}{:0{}}{}", file_prefix, step, digits, extension);
}

std::optional<int64_t> step_of_checkpoint(std::string_view name) {
  int64_t step = 0;
  if (!name.starts_with(file_prefix) || !name.ends_with(extension) || name.size() < file_prefix.size() + digits + extension.size())
    return std::nullopt;
  const std::string_view number = name.substr(file_prefix.size(), name.size() - file_prefix.size() - extension.size());
  if (number.find_first_not_of("0123456789") != std::string_view::npos || !parse_int(number, &step)) return std::nullopt;
  return step;
}

Status write_checkpoint(const VariableStore& store, const std::vector<std::shared_ptr<const Blob>>& contents, const CheckpointInfo& info,
                        const std::string& path) {
  std::vector<TensorToWrite> tensors = tensors_to_write(store, contents);
  for (TensorToWrite& tensor : tensors)
    tensor.checksum = checksum({tensor.data, static_cast<size_t>(byte_width(tensor.dtype) * tensor.shape.element_count())});
  TextPairs metadata = texts_of(info);
  HeaderChecksum sum;
  for (const auto& [name, value] : metadata) {
    sum.add(name);
    sum.add(value);
  }
  std::vector<const TensorToWrite*> by_name;
  for (const TensorToWrite& tensor : tensors) by_name.push_back(&tensor);
  std::sort(by_name.begin(), by_name.end(), [](const TensorToWrite* a, const TensorToWrite* b) { return a->name < b->name; });
  for (const TensorToWrite* const tensor : by_name) sum.add_tensor(tensor->name, tensor->dtype, tensor->shape, *tensor->checksum);
  metadata.emplace_back(key("checksum"), sum.text());
  return write_safetensors(path, tensors, metadata).status();
}

Result<ReadCheckpoint> read_checkpoint(const VariableStore& store, const std::string& path, const Limits& limits) {
  const std::string doing = fmt::format("while checkpoint {} was read", quoted(path));
  HEDDLE_TRY(const Safetensors file, open_variables_file(path, limits), doing);
  ReadCheckpoint read;
  HEDDLE_TRY(read.info, info_of(file, path), doing);
  HEDDLE_TRY(read.contents, read_variables(store, file), doing);
  return read;
}

Status take_checkpoint(std::vector<Net>& nets, const std::string& path, const Limits& limits) {
  const std::string doing = fmt::format("while checkpoint {} was read", quoted(path));
  HEDDLE_TRY(const Safetensors file, open_variables_file(path, limits), doing);
  HEDDLE_CHECK(info_of(file, path).status(), doing);
  ContentsByName contents;
  for (const TensorEntry& entry : file.tensors()) {
    HEDDLE_TRY(contents[entry.name], read_checked(file, entry), doing);
  }
  HEDDLE_TRY(const int64_t taken, set_contents(nets, contents, "the checkpoint"), doing);
  if (taken > 0) return {};
  return Status(Code::invalid_argument, "the nets have no variables that a checkpoint could give content",
                "take the nets that were trained")
      .during(doing);
}

Result<CheckpointInfo> read_checkpoint_info(const std::string& path) try {
  const std::string doing = fmt::format("while checkpoint {} was read", quoted(path));
  HEDDLE_TRY(const Safetensors file, open_variables_file(path, Limits()), doing);
  HEDDLE_TRY(CheckpointInfo info, info_of(file, path), doing);
  return info;
} catch (...) {
  return status_of_exception();
}

Result<CheckpointList> list_checkpoints(const std::string& folder) try {
  HEDDLE_TRY(const std::vector<std::string> names, names_in(folder), "while checkpoints were looked for");
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& name : names)
    if (const std::optional<int64_t> step = step_of_checkpoint(name)) found.emplace_back(*step, name);
  std::sort(found.rbegin(), found.rend());
  CheckpointList list;
  for (const auto& [step, name] : found) {
    Result<CheckpointInfo> info = read_checkpoint_info((std::filesystem::path(folder) / name).string());
    if (info.ok())
      list.complete.push_back(std::move(*info));
    else if (info.status().code() != Code::file_corrupt && info.status().code() != Code::file_truncated &&
             info.status().code() != Code::invalid_argument)
      return std::move(info).status();  // it may be whole: of another version, or not readable now
    else
      list.damaged.push_back(info.status().diagnostic());
  }
  return list;
} catch (...) {
  return status_of_exception();
}

}  // namespace heddle
