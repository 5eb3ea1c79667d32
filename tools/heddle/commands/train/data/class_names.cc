#include "commands/train/data/class_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "tensors/convert.h"

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
  if (!takes_whole(input.dtype))
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
    if (!store_whole(data, input.dtype, static_cast<int64_t>(i), found - names_.begin()))
      return Status(Code::limit_exceeded, fmt::format("{}: there are more classes than an i32 counts", option), "make the input i64");
  }
  return std::shared_ptr<const Blob>(std::move(made));
}

}  // namespace heddle::tool
