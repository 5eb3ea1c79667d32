#include "weights/attach.h"

#include <fmt/format.h>

#include <map>
#include <new>
#include <set>

#include "base/file.h"
#include "base/text/findings.h"
#include "base/text/text.h"
#include "weights/mapping.h"
#include "weights/safetensors.h"

namespace heddle {
namespace {

// Describes one content, for messages.
struct Place {
  const Net& net;
  const char* kind;  // "variable" or "constant"
  const std::string& name;
  const DeclaredType& type;
};

Result<Shape> constant_shape(const DeclaredType& type) {
  Shape shape;
  if (!type.ranked || type.dims.size() > max_rank) return Status(Code::shape_mismatch, "has no shape");
  for (const Dim& dim : type.dims) {
    if (dim.kind != Dim::Kind::constant) return Status(Code::shape_mismatch, "has dims that are not constant");
    shape.push_back(dim.value);
  }
  return shape;
}

class Attacher {
 public:
  Attacher(const std::filesystem::path& folder, const AttachOptions& options) : folder_(folder), options_(options) {}

  void attach_net(Net& net) {
    for (Value& value : net.values)
      if (value.kind == Value::Kind::constant) attach(value.content, {net, "constant", value.name, value.type});
    for (Variable& variable : net.variables) attach(variable.initial, {net, "variable", variable.name, variable.type});
    for (Node& node : net.nodes)
      for (Attribute& attribute : node.attributes) attach_subnet(attribute.value);
  }
  // Has one finding for each file that can't be used, however many tensors need it; then those about single tensors.
  Status status() && {
    if (unusable_.empty()) return findings_.status();
    Findings all;
    for (auto& [name, unusable] : unusable_) {
      Diagnostic& d = unusable.status.diagnostic();
      const size_t more = unusable.count - unusable.first.size();
      d.message += unusable.count == 1 ? fmt::format(", needed for {}", unusable.first[0])
                                       : fmt::format(", needed for {} tensors: {}{}", unusable.count, join(unusable.first, ", "),
                                                     more > 0 ? fmt::format(" and {} more", more) : "");
      all.add(std::move(unusable.status));
    }
    for (const Diagnostic& d : findings_.all()) all.add(Status(d));
    return all.status();
  }

 private:
  struct UnusableFile {
    Status status;
    size_t count = 0;
    std::vector<std::string> first;  // the first contents that need it
  };
  // Subnets are shared and const: one that lacks weights is replaced by a filled copy.
  void attach_subnet(AttributeValue& value) {
    auto* subnet = std::get_if<std::shared_ptr<const Net>>(&value);
    if (subnet == nullptr || *subnet == nullptr || !lacks_weights(**subnet)) return;
    auto filled = std::make_shared<Net>(**subnet);
    attach_net(*filled);
    *subnet = std::move(filled);
  }
  static bool lacks(const Content& content) { return content.blob == nullptr && !content.reference->file.empty(); }
  static bool lacks_weights(const Net& net) {
    for (const Value& value : net.values)
      if (lacks(value.content)) return true;
    for (const Variable& variable : net.variables)
      if (lacks(variable.initial)) return true;
    for (const Node& node : net.nodes) {
      for (const Attribute& attribute : node.attributes) {
        const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
        if (subnet != nullptr && *subnet != nullptr && lacks_weights(**subnet)) return true;
      }
    }
    return false;
  }

  void attach(Content& content, const Place& place) {
    if (!lacks(content)) return;
    const Result<Safetensors>* found = &open(content.reference->file);
    Status status = found->ok() ? check_identity(*content.reference, **found) : Status(found->status());
    if (!status.ok() && content.reference->identity.known())
      if (const Result<Safetensors>& staged = open(staged_file(*content.reference));
          staged.ok() && staged->identity() == content.reference->identity) {
        found = &staged;
        status = {};
      }
    const Result<Safetensors>& file = *found;
    if (!status.ok()) {
      UnusableFile& unusable = unusable_[content.reference->file];
      if (++unusable.count == 1) unusable.status = std::move(status).in_net(place.net.name);
      if (unusable.first.size() < 3) unusable.first.push_back(fmt::format("{} {}", place.kind, quoted(place.name)));
      return;
    }
    status = fill(content, place, *file);
    if (status.ok()) return;
    status.diagnostic().message = fmt::format("{} {}: {}", place.kind, quoted(place.name), status.diagnostic().message);
    findings_.add(std::move(status).in_net(place.net.name));
  }
  // The name of the weights file when its writer was killed between the renames of the net and of the weights.
  static std::string staged_file(const WeightReference& reference) {
    const std::filesystem::path file(reference.file);
    return (file.parent_path() / FileReplacement::staged_name(file.filename().native(), reference.identity.text())).native();
  }
  static Status check_identity(const WeightReference& reference, const Safetensors& file) {
    if (!reference.identity.known() || !file.identity().known() || reference.identity == file.identity()) return {};
    return Status(Code::weights_mismatch,
                  fmt::format("the weights file {} has the identity {}, the net was written with {}", quoted(reference.file),
                              file.identity().text(), reference.identity.text()),
                  "another net of this name was written since: write the net again, or bring its own weights file back");
  }
  // Compares the bytes of a tensor with the checksums in the net and in the file.
  Status check_sum(const WeightReference& reference, const Safetensors& file, const TensorEntry& entry) const {
    if (reference.checksum == 0) return {};
    bool same = !entry.checksum || *entry.checksum == reference.checksum;
    // The header of a file without checksums does not identify its bytes.
    if (same && (options_.verify_checksums || (reference.identity.known() && !file.identity().known()))) {
      HEDDLE_TRY(const uint64_t actual, file.checksum_of(entry));
      same = actual == reference.checksum;
    }
    if (same) return {};
    return Status(Code::weights_mismatch,
                  fmt::format("tensor {} of {} is not what it was when the net was written (checksum)", quoted(reference.tensor),
                              quoted(reference.file)),
                  "use the weights that were written with this net");
  }
  Status fill(Content& content, const Place& place, const Safetensors& file) {
    const WeightReference& reference = *content.reference;
    const std::string where = fmt::format("tensor {} of {}", quoted(reference.tensor), quoted(reference.file));
    const TensorEntry* entry = file.find(reference.tensor);
    if (entry == nullptr) return Status(Code::weights_missing, fmt::format("{} does not exist", where), "keep net and weights together");
    HEDDLE_TRY(const Shape shape, constant_shape(place.type));
    if (entry->dtype != place.type.dtype || entry->shape != shape)
      return Status(Code::weights_mismatch,
                    fmt::format("{} is {} {}, the net declares {} {}", where, entry->file_dtype, entry->shape.text(),
                                to_string(place.type.dtype), shape.text()),
                    "use the weights that were written with this net");
    if (entry->bytes > options_.limits.tensor_bytes)
      return over_limit(options_.limits, &Limits::tensor_bytes, fmt::format("{} has {}", where, human_bytes(entry->bytes)));
    HEDDLE_CHECK(check_sum(reference, file, *entry));
    HEDDLE_TRY(content.blob, file.blob(*entry, options_.map));
    return {};
  }
  // Opens each file once, and remembers failures too.
  const Result<Safetensors>& open(const std::string& name) {
    const auto found = files_.find(name);
    if (found != files_.end()) return found->second;
    if (!folder_.empty()) return files_.emplace(name, Safetensors::open(folder_, name, options_.limits)).first->second;
    return files_
        .emplace(name, Status(Code::weights_missing, fmt::format("the weights are in the file {} but the net has no folder", quoted(name)),
                              "say in which folder to look"))
        .first->second;
  }

  const std::filesystem::path& folder_;
  const AttachOptions& options_;
  std::map<std::string, Result<Safetensors>> files_;
  std::map<std::string, UnusableFile> unusable_;
  Findings findings_;
};

// Lists every mapping once, in the order of the contents.
struct Mappings {
  std::vector<const Mapping*> order;
  std::set<const Mapping*> seen;
};

void collect(const Net& net, Mappings& mappings) {
  const auto add = [&](const Content& content) {
    const Mapping* mapping = content.blob != nullptr ? Mapping::of(*content.blob) : nullptr;
    if (mapping != nullptr && mappings.seen.insert(mapping).second) mappings.order.push_back(mapping);
  };
  for (const Value& value : net.values) add(value.content);
  for (const Variable& variable : net.variables) add(variable.initial);
  for (const Node& node : net.nodes) {
    for (const Attribute& attribute : node.attributes) {
      const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
      if (subnet != nullptr && *subnet != nullptr) collect(**subnet, mappings);
    }
  }
}

}  // namespace

Status attach_weights(Net& net, const std::filesystem::path& folder, const AttachOptions& options) {
  try {
    Attacher attacher(folder, options);
    attacher.attach_net(net);
    return std::move(attacher).status();
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, fmt::format("no memory for the weights of {}", quoted(net.name)), "let them be mapped");
  }
}

Status check_weights_whole(const Net& net) {
  Mappings mappings;
  collect(net, mappings);
  Findings findings;
  for (const Mapping* mapping : mappings.order) findings.add(mapping->still_whole().in_net(net.name));
  return std::move(findings).status();
}

}  // namespace heddle
