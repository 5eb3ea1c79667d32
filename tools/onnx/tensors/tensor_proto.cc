#include "onnx/tensors/tensor_proto.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/text/text.h"
#include "onnx/model_file.h"
#include "onnx/tensors/tensor_content.h"
#include "onnx/tensors/types.h"

namespace heddle {
Result<NamedTensor> read_tensor_proto(const std::filesystem::path& file, const Limits& limits) {
  HEDDLE_TRY(const auto tensor, importer::read_tensor(file, limits));
  importer::ExternalData external{file.parent_path()};
  auto blob = importer::content_of(*tensor, external, limits);
  if (!blob.ok()) return std::move(blob).status().during(fmt::format("while reading {}", quoted(file.string())));
  return NamedTensor{tensor->name(), std::move(blob).value()};
}

Status write_tensor_proto(const std::filesystem::path& file, const std::string& name, const Blob& blob) {
  if (importer::dtype_to_onnx(blob.dtype) == 0) return {Code::invalid_argument, "a tensor without an element type can not be written"};
  if (blob.bytes > INT32_MAX - 4096)
    return {Code::limit_exceeded, fmt::format("{} bytes do not fit a TensorProto file", blob.bytes), "write .npy or .safetensors instead"};
  ::onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(importer::dtype_to_onnx(blob.dtype));
  for (int64_t dim : blob.shape) tensor.add_dims(dim);
  tensor.set_raw_data(blob.data, static_cast<size_t>(blob.bytes));
  std::string bytes;
  if (!tensor.SerializePartialToString(&bytes)) return {Code::internal, "protobuf refused to serialise a tensor"};
  HEDDLE_TRY(FileReplacement replacement, FileReplacement::create(file));
  HEDDLE_CHECK(replacement.write(bytes));
  return replacement.commit();
}

}  // namespace heddle
