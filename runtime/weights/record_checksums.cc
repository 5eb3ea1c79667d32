#include "weights/record_checksums.h"

#include <map>

#include "weights/safetensors.h"

namespace heddle {
namespace {

class Recorder {
 public:
  Recorder(const std::filesystem::path& folder, const Limits& limits) : folder_(folder), limits_(limits) {}

  Status record(Net& net) {
    for (Value& value : net.values) HEDDLE_CHECK(record(value.content.reference));
    for (Variable& variable : net.variables) HEDDLE_CHECK(record(variable.initial.reference));
    for (Node& node : net.nodes) {
      for (Attribute& attribute : node.attributes) {
        auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
        if (subnet == nullptr) continue;
        auto recorded = std::make_shared<Net>(**subnet);  // shared and const
        HEDDLE_CHECK(record(*recorded));
        *subnet = std::move(recorded);
      }
    }
    return {};
  }

 private:
  Status record(Rare<WeightReference>& recorded) {
    if (recorded->file.empty() || recorded->checksum != 0) return {};
    WeightReference& reference = recorded.edit();
    auto at = files_.find(reference.file);
    if (at == files_.end()) at = files_.emplace(reference.file, Safetensors::open(folder_, reference.file, limits_)).first;
    if (!at->second.ok()) return {};
    const Safetensors& file = *at->second;
    const TensorEntry* entry = file.find(reference.tensor);
    if (entry == nullptr) return {};
    if (entry->checksum) {
      reference.checksum = *entry->checksum;
    } else {
      HEDDLE_TRY(reference.checksum, file.checksum_of(*entry));
    }
    reference.identity = file.identity();
    return {};
  }

  const std::filesystem::path& folder_;
  const Limits& limits_;
  std::map<std::string, Result<Safetensors>> files_;
};

}  // namespace

Status record_checksums(Net& net, const std::filesystem::path& folder, const Limits& limits) {
  return Recorder(folder, limits).record(net);
}

}  // namespace heddle
