#include "commands/train/data/sample_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "base/text/text.h"

namespace heddle::tool {
namespace {

class ColumnDataset final : public Dataset {
 public:
  explicit ColumnDataset(std::vector<NamedColumn> columns) : columns_(std::move(columns)) {
    bool is_known = false;
    RunningChecksum sum;
    const auto add = [&](const std::string& text) {
      sum.add(std::as_bytes(std::span(text.c_str(), text.size() + 1)));  // with its end, so that no two lists of texts look the same
    };
    for (const NamedColumn& named : columns_) {
      names_.push_back(named.input);
      const std::string identity = named.column->identity();
      is_known = is_known || !identity.empty();
      add(named.input);
      add(identity);
    }
    if (is_known) identity_ = hex(sum.value());
  }
  const std::vector<std::string>& names() const override { return names_; }
  int64_t samples() const override { return columns_.empty() ? 0 : columns_[0].column->samples(); }
  Status read(const BatchRequest& request, Batch& batch) const override {
    for (size_t i = 0; i < columns_.size(); ++i) HEDDLE_CHECK(columns_[i].column->read(request, i, batch));
    return {};
  }
  bool is_in_memory() const override {
    return std::all_of(columns_.begin(), columns_.end(), [](const NamedColumn& named) { return named.column->is_in_memory(); });
  }
  std::string sample_name(int64_t sample) const override {
    for (const NamedColumn& named : columns_)
      if (std::string name = named.column->sample_name(sample); !name.empty()) return name;
    return Dataset::sample_name(sample);
  }
  std::string identity() const override { return identity_; }

 private:
  const std::vector<NamedColumn> columns_;
  std::string identity_;
  std::vector<std::string> names_;
};

}  // namespace

Result<std::shared_ptr<const Dataset>> dataset_of(const std::string& option, std::vector<NamedColumn> columns) {
  for (const NamedColumn& named : columns)
    if (named.column->samples() != columns[0].column->samples())
      return Status(Code::shape_mismatch,
                    fmt::format("{}: {} has {} samples, {} has {}", option, quoted(columns[0].input), columns[0].column->samples(),
                                quoted(named.input), named.column->samples()),
                    "give as many of each");
  return std::shared_ptr<const Dataset>(std::make_shared<ColumnDataset>(std::move(columns)));
}

}  // namespace heddle::tool
