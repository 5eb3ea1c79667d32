#include "load/save.h"

#include <fmt/format.h>

#include <new>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/exceptions.h"
#include "base/file.h"
#include "base/text/text.h"
#include "load/earlier_variables.h"
#include "load/flatbuffer.h"
#include "load/header.h"
#include "load/json.h"
#include "load/structure.h"
#include "weights/attach.h"
#include "weights/safetensors.h"

namespace heddle {
namespace {

// Decides where each content of a net and its subnets is stored, and gathers the contents for the weights file.
class WeightsPlan {
 public:
  WeightsPlan(std::string file, const SaveOptions& options) : file_(std::move(file)), options_(options) {}

  // Finds whether any content has to be added to the weights file. The file is then written anew as a whole, so that contents which refer
  // to it must be written again too.
  void find_new(const Net& net) {
    for (const Variable& variable : net.variables) rewrites_ = rewrites_ || is_new(variable.initial);
    for (const Value& value : net.values) rewrites_ = rewrites_ || (value.kind == Value::Kind::constant && is_new(value.content));
    for (const Node& node : net.nodes) {
      for (const Attribute& attribute : node.attributes)
        if (const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value)) find_new(**subnet);
    }
  }
  // Gathers the contents of all nets of a file.
  Status gather(std::span<const Net> nets) {
    for (const Net& net : nets) {
      HEDDLE_CHECK(gather(net, &net == nets.data() ? "" : net.name + "/"));
      earlier_.add(net);
    }
    return {};
  }
  const std::vector<TensorToWrite>& tensors() const { return tensors_; }
  // Sets the identity of the weights file in the net's references. Must be called after the tensors were written.
  void complete(const WrittenWeights& written) {
    for (const auto& [reference, tensor] : unwritten_) {
      reference->checksum = written.checksums[tensor];
      reference->identity = written.identity;
    }
  }
  const WeightReference* operator()(const Content& content) const {
    const std::optional<WeightReference>& reference = placed_.at(&content);
    return reference ? &*reference : nullptr;
  }

 private:
  // `prefix` leads to the subnet: "loop.body/".
  Status gather(const Net& net, const std::string& prefix) {
    for (const Variable& variable : net.variables)
      if (variable.initial.any() && !earlier_.have(variable)) HEDDLE_CHECK(place(net, variable.initial, prefix + variable.name));
    for (const Value& value : net.values)
      if (value.kind == Value::Kind::constant) HEDDLE_CHECK(place(net, value.content, prefix + value.name));
    for (const Node& node : net.nodes) {
      for (const Attribute& attribute : node.attributes) {
        const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
        if (subnet != nullptr) HEDDLE_CHECK(gather(**subnet, prefix + node.name + "." + attribute.name + "/"));
      }
    }
    return {};
  }
  bool is_new(const Content& content) const {
    return content.reference->file.empty() && content.blob != nullptr && content.blob->bytes > options_.inline_bytes;
  }
  bool kept(const Content& content) const {
    if (!options_.keep_references || content.reference->file.empty()) return false;
    return !rewrites_ || std::filesystem::path(content.reference->file).lexically_normal() != file_;
  }
  Status place(const Net& net, const Content& content, const std::string& name) {
    std::optional<WeightReference>& placed = placed_[&content];
    if (kept(content)) {
      placed = *content.reference;
      return {};
    }
    if (content.blob == nullptr)
      return Status(Code::weights_missing, fmt::format("the weights of {} are not attached", quoted(name)), "load the net with its weights")
          .in_net(net.name);
    if (content.blob->bytes <= options_.inline_bytes) return {};
    const auto [at, added] = by_bytes_.try_emplace(content.blob->data, tensors_.size());
    size_t tensor = at->second;
    // Shared bytes are written once; a view of the same bytes with another type is a tensor of its own.
    if (added || !same_type(tensors_[tensor], *content.blob)) {
      tensor = tensors_.size();
      tensors_.push_back({unused(name), content.blob->dtype, content.blob->shape, content.blob->data});
    }
    placed = WeightReference{file_, tensors_[tensor].name, 0, {}};
    unwritten_.emplace_back(&*placed, tensor);
    return {};
  }
  static bool same_type(const TensorToWrite& tensor, const Blob& blob) { return tensor.dtype == blob.dtype && tensor.shape == blob.shape; }
  // A name that is not used yet: a variable and a constant may have the same name; "__" has a meaning in the format; nested names may be
  // too long to load.
  std::string unused(const std::string& name) {
    const bool too_long = static_cast<int64_t>(name.size()) + 16 > options_.limits.name_bytes;
    const std::string base = too_long ? "weights" : name.starts_with("__") ? "_" + name : name;
    std::string tensor = base;
    for (int64_t i = 2; !names_.insert(tensor).second; ++i) tensor = fmt::format("{}~{}", base, i);
    return tensor;
  }

  const std::string file_;
  const SaveOptions& options_;
  EarlierVariables earlier_;
  bool rewrites_ = false;
  std::unordered_map<const Content*, std::optional<WeightReference>> placed_;
  std::unordered_map<const std::byte*, size_t> by_bytes_;
  std::unordered_set<std::string> names_;
  std::vector<TensorToWrite> tensors_;
  std::vector<std::pair<WeightReference*, size_t>> unwritten_;  // a reference in placed_, and the index of its tensor in tensors_
};

// The oldest format version that supports all that the nets need.
uint32_t format_version(std::span<const Net> nets) {
  uint32_t version = nets.size() == 1 ? one_net_version : several_nets_version;
  for (const Net& net : nets)
    for (const Variable& variable : net.variables) {
      if (!variable.initializer.empty()) version = std::max(version, initializer_version);
      if (!variable.replica_of.empty()) return replica_version;
    }
  return version;
}

// A weights file that is to replace the net's, and its identity.
struct NewWeights {
  FileReplacement file;
  WeightsIdentity identity;
};

// Both files are complete before the first name changes. At each moment the net's file has its weights: the new ones lie beside the old
// ones under a name with their identity (weights/attach.h) when the net is replaced, and replace the old ones after it.
Status replace_both(FileReplacement& net, NewWeights& weights) {
  const std::string tag = weights.identity.text();
  HEDDLE_CHECK(net.sync());
  const FileDescriptor turn = weights.file.lock_folder();
  HEDDLE_CHECK(weights.file.stage(tag));
  HEDDLE_CHECK(net.commit());
  HEDDLE_CHECK(weights.file.commit());
  without_exceptions([&] { weights.file.remove_staged(tag); });  // where there is no memory for it, the next writer does
  return {};
}

// `weights` null: there are none to write.
Status write_nets(std::span<const Net> nets, const std::filesystem::path& path, const ContentReferences& references, NewWeights* weights) {
  const auto replace = [&](FileReplacement& file) { return weights ? replace_both(file, *weights) : file.commit(); };
  if (path.extension() == ".json") {
    HEDDLE_TRY(FileReplacement file, FileReplacement::create(path));
    HEDDLE_CHECK(file.write(nets_to_json_text(nets, references)));
    return replace(file);
  }
  return nets_to_flatbuffer(nets, references, [&](std::span<const std::byte> payload) -> Status {
    HEDDLE_TRY(FileReplacement file, FileReplacement::create(path));
    HEDDLE_CHECK(file.write(net_header(payload, format_version(nets))));
    HEDDLE_CHECK(file.write(payload));
    return replace(file);
  });
}

// The file that a path leads to, through all links.
std::filesystem::path target_of(const std::filesystem::path& path) {
  std::error_code unknown;
  const std::filesystem::path target = std::filesystem::weakly_canonical(std::filesystem::absolute(path, unknown), unknown);
  return unknown ? path : target;
}

// Checks before anything is written that the nets are valid, that each content has bytes or a reference, and that no mapped weights file
// has changed since.
Status check_for_bytes(std::span<const Net> nets, const Limits& limits) {
  HEDDLE_CHECK(check_whole_nets(nets, limits));
  for (const Net& net : nets) HEDDLE_CHECK(check_weights_whole(net));
  return {};
}

Status save_checked(std::span<const Net> nets, const std::filesystem::path& path, const SaveOptions& options) {
  const std::filesystem::path weights = weights_path(path);
  if (target_of(weights) == target_of(path))
    return Status(Code::invalid_argument, fmt::format("{} is where the weights of the net go", quoted(path.native())),
                  "let its name end in .heddle or .json");
  HEDDLE_CHECK(check_for_bytes(nets, options.limits));
  WeightsPlan plan(weights.filename().native(), options);
  for (const Net& net : nets) plan.find_new(net);
  HEDDLE_CHECK(plan.gather(nets));
  std::optional<NewWeights> replaced;
  if (!plan.tensors().empty()) {
    if (!is_utf8(weights.filename().native()))
      return Status(Code::file_unwritable,
                    fmt::format("the file name {} is not UTF-8, the net could not refer to it", quoted(weights.filename().native())));
    HEDDLE_TRY(CompleteWeights complete, complete_safetensors(weights, plan.tensors()));
    plan.complete(complete.written);
    replaced.emplace(NewWeights{std::move(complete.file), complete.written.identity});
  }
  return write_nets(
      nets, path, [&](const Content& content) { return plan(content); }, replaced ? &*replaced : nullptr);
}

}  // namespace

std::filesystem::path weights_path(const std::filesystem::path& net) {
  return std::filesystem::path(net).replace_extension(".safetensors");
}

Status save_net(const Net& net, const std::filesystem::path& path, const SaveOptions& options) {
  return save_nets({&net, 1}, path, options);
}

Status save_nets(std::span<const Net> nets, const std::filesystem::path& path, const SaveOptions& options) {
  const std::string what = fmt::format("while saving {}", quoted(path.native()));
  try {
    HEDDLE_CHECK(save_checked(nets, path, options), what);
    return {};
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, fmt::format("no memory to save {}", quoted(path.native())));
  }
}

Result<std::vector<std::byte>> nets_to_bytes(std::span<const Net> nets, const Limits& limits) {
  HEDDLE_CHECK(check_for_bytes(nets, limits));
  std::vector<std::byte> bytes;
  HEDDLE_CHECK(nets_to_flatbuffer(nets, references_as_loaded, [&](std::span<const std::byte> payload) -> Status {
    const auto header = net_header(payload, format_version(nets));
    bytes.reserve(header.size() + payload.size());
    bytes.assign(header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return {};
  }));
  return bytes;
}

Result<std::string> nets_to_json(std::span<const Net> nets, const Limits& limits) {
  HEDDLE_CHECK(check_for_bytes(nets, limits));
  return nets_to_json_text(nets, references_as_loaded);
}

}  // namespace heddle
