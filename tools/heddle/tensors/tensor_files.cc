#include "tensors/tensor_files.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/element.h"
#include "base/text/text.h"
#include "common/standard_streams.h"
#include "onnx/tensors/tensor_proto.h"
#include "tensors/csv.h"
#include "tensors/npy.h"
#include "weights/safetensors.h"

namespace heddle::tool {
namespace {

Result<std::shared_ptr<const Blob>> read_from_safetensors(const std::string& file, const std::string& tensor, const Limits& limits) {
  const std::filesystem::path path(file);
  std::filesystem::path folder = path.parent_path();
  if (folder.empty()) folder = ".";
  HEDDLE_TRY(const Safetensors tensors, Safetensors::open(folder, path.filename().string(), limits));
  if (tensor.empty() && tensors.tensors().size() != 1)
    return Status(Code::unknown_name, fmt::format("{} holds {} tensors", quoted(file), tensors.tensors().size()),
                  fmt::format("name one: {}:NAME", word(file)));
  const TensorEntry* entry = tensor.empty() ? &tensors.tensors()[0] : tensors.find(tensor);
  if (!entry) {
    std::vector<std::string> names;
    for (const TensorEntry& e : tensors.tensors()) names.push_back(e.name);
    return Status(Code::unknown_name, fmt::format("{} has no tensor {}", quoted(file), quoted(tensor)), suggestion(tensor, names));
  }
  return tensors.blob(*entry);
}

}  // namespace

std::string file_of_tensor(const std::string& text) {
  for (const std::string_view extension : {".safetensors:", ".csv:"})
    if (const size_t at = text.find(extension); at != std::string::npos) return text.substr(0, at + extension.size() - 1);
  return text;
}

Result<std::shared_ptr<const Blob>> read_tensor(const std::string& argument, const Limits& limits) {
  HEDDLE_TRY(const std::string text, named_by_content(argument, limits.weight_file_bytes));
  const std::string file = file_of_tensor(text), part = file.size() < text.size() ? text.substr(file.size() + 1) : "";
  if (file.ends_with(".safetensors")) return read_from_safetensors(file, part, limits);
  if (file.ends_with(".csv")) return read_csv(file, part, limits);
  const std::string extension = std::filesystem::path(file).extension().string();
  if (extension == ".npy") return read_npy(file, limits);
  if (extension == ".pb") {
    HEDDLE_TRY(const NamedTensor tensor, read_tensor_proto(file, limits));
    return tensor.blob;
  }
  return Status(Code::invalid_argument, fmt::format("{}: no reader for {}", quoted(file), quoted(extension)),
                "use .npy, .safetensors[:TENSOR], .csv[:COLUMN,COLUMN] or .pb");
}

Status write_tensor(const std::string& file, const std::string& name, const TensorView& tensor) {
  const std::string extension = std::filesystem::path(file).extension().string();
  if (extension == ".npy" || takes_bytes_as_they_come(file)) return write_npy(file, tensor);
  if (extension == ".safetensors") {
    const TensorToWrite one{name, tensor.dtype, tensor.shape, static_cast<const std::byte*>(tensor.data)};
    return write_safetensors(file, {&one, 1}).status();
  }
  return {Code::invalid_argument, fmt::format("{}: no writer for {}", quoted(file), quoted(extension)), "use .npy or .safetensors"};
}

std::string element_text(const TensorView& tensor, int64_t i) {
  switch (tensor.dtype) {
    case DType::i64:
      return fmt::to_string(static_cast<const int64_t*>(tensor.data)[i]);
    case DType::u64:
      return fmt::to_string(static_cast<const uint64_t*>(tensor.data)[i]);
    case DType::f64:
      return shortest(element(tensor, i));
    default:
      return shortest(static_cast<float>(element(tensor, i)));
  }
}

long double element_exactly(const TensorView& tensor, int64_t i) {
  if (tensor.dtype == DType::i64) return static_cast<long double>(static_cast<const int64_t*>(tensor.data)[i]);
  if (tensor.dtype == DType::u64) return static_cast<long double>(static_cast<const uint64_t*>(tensor.data)[i]);
  return element(tensor, i);
}

std::string tensor_text(const TensorView& tensor, int64_t limit) {
  std::string out = fmt::format("{}{} =", to_string(tensor.dtype), tensor.shape.text());
  const int64_t count = tensor.shape.element_count();
  const int64_t row = tensor.shape.rank() > 0 ? std::max<int64_t>(1, tensor.shape[tensor.shape.rank() - 1]) : 1;
  for (int64_t i = 0; i < count && i < limit; ++i)
    out += (tensor.shape.rank() > 1 && i % row == 0 ? "\n  " : " ") + element_text(tensor, i);
  if (count > limit) out += fmt::format(" ... ({} more)", count - limit);
  return out;
}

}  // namespace heddle::tool
