#include "onnx/tensors/tensor_proto.h"

#include <gtest/gtest.h>

#include <cstring>

#include "onnx/model_builder.h"
#include "onnx/tensors/types.h"

namespace heddle {
namespace {

using namespace heddle::testing;

std::filesystem::path write(const TemporaryFolder& folder, const ::onnx::TensorProto& tensor) {
  const std::filesystem::path file = folder.path() / "t.pb";
  std::ofstream(file, std::ios::binary) << tensor.SerializePartialAsString();
  return file;
}

TEST(TensorProto, EveryDtypeComesBack) {
  TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "t.pb";
  for (int d = 1; d < HEDDLE_DTYPE_COUNT; ++d) {
    const auto dtype = static_cast<DType>(d);
    EXPECT_EQ(importer::dtype_from_onnx(importer::dtype_to_onnx(dtype)), dtype);
    std::byte* bytes = nullptr;
    const auto blob = Blob::allocate(dtype, Shape{2, 3}, &bytes);
    for (int64_t i = 0; i < blob->bytes; ++i) bytes[i] = dtype == DType::boolean ? std::byte(i & 1) : std::byte(i * 7);
    const Status written = write_tensor_proto(file, "name", *blob);
    ASSERT_TRUE(written.ok()) << written.text();
    const Result<NamedTensor> read = read_tensor_proto(file);
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_EQ(read->name, "name");
    EXPECT_EQ(read->blob->dtype, dtype);
    EXPECT_EQ(read->blob->shape, blob->shape);
    EXPECT_EQ(std::memcmp(read->blob->data, blob->data, static_cast<size_t>(blob->bytes)), 0) << to_string(dtype);
  }
}

TEST(TensorProto, HalfPrecisionBitsLieInTheIntegers) {
  TemporaryFolder folder;
  ::onnx::TensorProto tensor;
  tensor.set_data_type(10);
  tensor.add_dims(2);
  tensor.add_int32_data(0x3c00);
  tensor.add_int32_data(0xfbff);
  const Result<NamedTensor> read = read_tensor_proto(write(folder, tensor));
  ASSERT_TRUE(read.ok()) << read.status().text();
  const auto* bits = reinterpret_cast<const uint16_t*>(read->blob->data);
  EXPECT_EQ(bits[0], 0x3c00);
  EXPECT_EQ(bits[1], 0xfbff);
}

TEST(TensorProto, BooleansAreZeroOrOne) {
  TemporaryFolder folder;
  ::onnx::TensorProto tensor;
  tensor.set_data_type(9);
  tensor.add_dims(3);
  tensor.set_raw_data(std::string("\x00\xff\x02", 3));
  const Result<NamedTensor> read = read_tensor_proto(write(folder, tensor));
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->blob->data[0], std::byte{0});
  EXPECT_EQ(read->blob->data[1], std::byte{1});
  EXPECT_EQ(read->blob->data[2], std::byte{1});
}

TEST(TensorProto, WrongFilesAreErrors) {
  TemporaryFolder folder;
  EXPECT_EQ(read_tensor_proto(folder.path() / "none.pb").status().code(), Code::file_not_found);
  ::onnx::TensorProto text;
  text.set_data_type(8);
  text.add_string_data("a");
  EXPECT_EQ(read_tensor_proto(write(folder, text)).status().code(), Code::unsupported);
  Blob none;
  EXPECT_EQ(write_tensor_proto(folder.path() / "t.pb", "", none).code(), Code::invalid_argument);
  const auto blob = Blob::copy_of(DType::f32, Shape{}, "\0\0\0");
  EXPECT_EQ(write_tensor_proto(folder.path() / "no" / "t.pb", "", *blob).code(), Code::file_unwritable);
}

}  // namespace
}  // namespace heddle
