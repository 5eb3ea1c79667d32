#include "commands/train/data/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/text.h"

namespace heddle::tool {

ClassNames ClassNames::of(std::vector<std::string> texts) {
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  ClassNames made;
  made.names_ = std::move(texts);
  return made;
}

Result<std::shared_ptr<const Blob>> ClassNames::numbers(const std::string& option, const PortInfo& input,
                                                        const std::vector<std::string>& texts) const {
  if (input.dtype != DType::i64 && input.dtype != DType::i32)
    return Status(Code::dtype_mismatch,
                  fmt::format("{}: input {} is {}, and the number of a class is whole", option, quoted(input.name), to_string(input.dtype)),
                  "make it i64 or i32");
  Shape shape = {static_cast<int64_t>(texts.size())};
  if (input.ranked && input.shape.rank() == 2) shape.push_back(1);
  std::byte* data = nullptr;
  auto made = Blob::allocate(input.dtype, shape, &data);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto found = std::lower_bound(names_.begin(), names_.end(), texts[i]);
    if (found == names_.end() || *found != texts[i])
      return Status(
          Code::unknown_name,
          fmt::format("{}: {} of sample {} is none of the {} classes of the training", option, quoted(texts[i]), i, names_.size()),
          suggestion(texts[i], names_));
    const auto number = found - names_.begin();
    if (input.dtype == DType::i64)
      reinterpret_cast<int64_t*>(data)[i] = number;
    else
      reinterpret_cast<int32_t*>(data)[i] = static_cast<int32_t>(number);
  }
  return std::shared_ptr<const Blob>(std::move(made));
}

}  // namespace heddle::tool
