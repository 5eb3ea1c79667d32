#include "dump.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/text.h"
#include "compare.h"
#include "tensor_files.h"

namespace heddle::tool {
namespace {

// The bytes of a value in another order of dimensions, row-major; empty when they are so already.
std::vector<std::byte> row_major(const TensorView& physical, const heddle_layout& layout) {
  const int rank = physical.shape.rank();
  if (layout.rank != rank || rank == 0 || physical.shape.element_count() == 0) return {};
  const auto width = static_cast<size_t>(byte_width(physical.dtype));
  std::vector<int64_t> stride(static_cast<size_t>(rank)), index(static_cast<size_t>(rank), 0);
  int64_t step = 1;
  for (int i = rank; i-- > 0;) {
    stride[static_cast<size_t>(layout.order[i])] = step;
    step *= physical.shape[layout.order[i]];
  }
  std::vector<std::byte> bytes(static_cast<size_t>(physical.byte_size()));
  const auto* from = static_cast<const std::byte*>(physical.data);
  for (size_t to = 0; to < bytes.size(); to += width) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * stride[d];
    std::memcpy(&bytes[to], from + static_cast<size_t>(at) * width, width);
    for (int d = rank; d-- > 0;) {
      if (++index[static_cast<size_t>(d)] < physical.shape[d]) break;
      index[static_cast<size_t>(d)] = 0;
    }
  }
  return bytes;
}

}  // namespace

std::string FileNames::of(const std::string& name, const std::string& owner) {
  std::string plain = name;
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c == '/' || c == '\\' || c == ':'; }, '_');
  std::string file = plain;
  for (int n = 2; owners_.try_emplace(file, owner).first->second != owner; ++n) file = plain + "_" + std::to_string(n);
  return file;
}

Status Dump::create(const std::string& folder, const std::string& only, Dump* dump) {
  dump->folder_ = folder;
  dump->only_ = only;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? Status(Code::file_unwritable, "--dump " + quoted(folder) + ": " + error.message()) : Status();
}

Status Dump::write(Execution& execution, uint32_t step) {
  const PlanStep& s = execution.plan().steps[step];
  if (!only_.empty() && s.name != only_ && s.type != only_) return {};
  for (size_t k = 0; k < s.outputs.size(); ++k) {
    if (!s.outputs[k].value.valid()) continue;
    const heddle_tensor& view = execution.view(s.outputs[k].value);
    if (view.layout.block_count != 0)
      return {Code::unsupported,
              "output " + std::to_string(k) + " of " + quoted(s.name) + " is in a blocked layout, which --dump can't write",
              "choose other operators with --only"};
    const std::string output = k == 0 ? s.name : s.name + "." + std::to_string(k);
    TensorView tensor = true_view(view);
    std::vector<std::byte> staging;
    HEDDLE_TRY(tensor.data, execution.on_host(s.outputs[k].value, staging));
    std::vector<std::byte> ordered = row_major(tensor, view.layout);
    if (!ordered.empty()) tensor.data = ordered.data();
    const std::string file = names_.of(output, std::to_string(step) + "." + std::to_string(k)) + ".npy";
    HEDDLE_CHECK(write_tensor((std::filesystem::path(folder_) / file).string(), s.name, tensor));
  }
  return {};
}

}  // namespace heddle::tool
