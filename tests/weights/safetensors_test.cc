// safetensors: a written file reads back; a file whose tensors do not cover its bytes exactly is refused.
#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/checksum.h"
#include "base/text/text.h"
#include "load/temporary_folder.h"

namespace heddle {
namespace {

using testing::TemporaryFolder;
using testing::write_text;

// A file of this header followed by `data_bytes` zero bytes.
std::string file_with(const std::string& header, size_t data_bytes) {
  std::string out;
  for (int shift = 0; shift < 64; shift += 8) out += static_cast<char>((header.size() >> shift) & 0xFF);
  return out + header + std::string(data_bytes, '\0');
}

Code code_of(const std::string& header, size_t data_bytes) {
  return parse_safetensors_header(header, 8 + static_cast<int64_t>(header.size()), 8 + static_cast<int64_t>(header.size() + data_bytes),
                                  nullptr)
      .status()
      .code();
}

TEST(Safetensors, EveryDTypeReadsBackAligned) {
  const TemporaryFolder folder;
  std::vector<std::byte> bytes(40'000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const std::vector<std::byte> flags(70, std::byte{1});
  std::vector<TensorToWrite> tensors;
  for (int d = 1; d < HEDDLE_DTYPE_COUNT; ++d) {
    const auto dtype = static_cast<DType>(d);
    const std::byte* data = dtype == DType::boolean ? flags.data() : bytes.data();
    tensors.push_back({std::string("small ") + to_string(dtype), dtype, Shape{3, d}, data});
    if (dtype != DType::boolean)
      tensors.push_back({std::string("\"large\" ") + to_string(dtype), dtype, Shape{40'000 / byte_width(dtype)}, data});
  }
  tensors.push_back({"scalar", DType::f64, Shape{}, bytes.data()});
  tensors.push_back({"empty", DType::f32, Shape{0, 5}, bytes.data()});
  ASSERT_TRUE(write_safetensors(folder / "w.safetensors", tensors, {{"format", "pt"}, {"a", "\"\n"}}).ok());

  const auto file = Safetensors::open(folder.path(), "w.safetensors", {});
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file->tensors().size(), tensors.size());  // padding is not listed
  EXPECT_EQ(file->metadata(), (TextPairs{{"format", "pt"}, {"a", "\"\n"}}));
  for (const TensorToWrite& tensor : tensors) {
    SCOPED_TRACE(tensor.name);
    const TensorEntry* entry = file->find(tensor.name);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->offset % 64, 0);
    EXPECT_EQ(entry->shape, tensor.shape);
    for (const bool map : {true, false}) {
      const auto blob = file->blob(*entry, map);
      ASSERT_TRUE(blob.ok()) << blob.status().text();
      EXPECT_EQ((*blob)->dtype, tensor.dtype);
      EXPECT_EQ(reinterpret_cast<uintptr_t>((*blob)->data) % 64, 0u);
      EXPECT_EQ(std::memcmp((*blob)->data, tensor.data, static_cast<size_t>((*blob)->bytes)), 0);
      EXPECT_EQ(Mapping::of(**blob) != nullptr, map && entry->bytes > Safetensors::small_tensor_bytes);
    }
    EXPECT_EQ(entry->checksum, checksum({tensor.data, static_cast<size_t>(entry->bytes)}));
    EXPECT_EQ(*file->checksum_of(*entry), checksum({tensor.data, static_cast<size_t>(entry->bytes)}));
  }
}

// Compares the bytes themselves, so that reader and writer can not agree on something else.
TEST(Safetensors, TheFileIsWhatTheFormatSays) {
  const TemporaryFolder folder;
  const float numbers[] = {1, 2};
  const std::vector<float> line(16, 0.5f);
  const TensorToWrite tensors[] = {{"b", DType::f32, Shape{2}, reinterpret_cast<const std::byte*>(numbers)},
                                   {"a", DType::f32, Shape{4, 4}, reinterpret_cast<const std::byte*>(line.data())},
                                   {"c", DType::u8, Shape{}, reinterpret_cast<const std::byte*>("\x07")}};
  ASSERT_TRUE(write_safetensors(folder / "w.safetensors", tensors).ok());
  const auto sum = [](const auto& values, size_t bytes) { return hex(checksum(std::as_bytes(std::span(values)).first(bytes))); };
  std::string header =
      R"({"__metadata__":{"xxh64:b":")" + sum(numbers, 8) + R"(","xxh64:a":")" + sum(line, 64) + R"(","xxh64:c":")" +
      sum(std::vector<char>{7}, 1) +
      R"("},"a":{"dtype":"F32","shape":[4, 4],"data_offsets":[0,64]},"b":{"dtype":"F32","shape":[2],"data_offsets":[64,72]},)"
      R"("__padding__.2":{"dtype":"U8","shape":[56],"data_offsets":[72,128]},"c":{"dtype":"U8","shape":[],"data_offsets":[128,129]}})";
  header.resize((header.size() + 8 + 63) / 64 * 64 - 8, ' ');
  std::string expected = file_with(header, 129);
  std::memcpy(expected.data() + 8 + header.size(), line.data(), 64);
  std::memcpy(expected.data() + 8 + header.size() + 64, numbers, 8);
  expected.back() = 7;
  EXPECT_EQ(testing::read_text(folder / "w.safetensors"), expected);
}

// The header alone identifies the weights; a checksum of no tensor is metadata, one that is malformed an error.
TEST(Safetensors, IdentityIsOfFilesThatHaveEveryChecksum) {
  const TemporaryFolder folder;
  const float numbers[] = {1, 2};
  const auto* data = reinterpret_cast<const std::byte*>(numbers);
  const TensorToWrite two[] = {{"a", DType::f32, Shape{1}, data}, {"b", DType::f32, Shape{1}, data + 4}};
  const TensorToWrite exchanged[] = {{"a", DType::f32, Shape{1}, data + 4}, {"b", DType::f32, Shape{1}, data}};
  const auto identity = [&](std::span<const TensorToWrite> tensors, const TextPairs& metadata = {}) {
    const auto written = write_safetensors(folder / "w.safetensors", tensors, metadata);
    EXPECT_TRUE(written.ok()) << written.status().text();
    const auto file = Safetensors::open(folder.path(), "w.safetensors", {});
    EXPECT_EQ(written->identity, file->identity());
    EXPECT_EQ(file->metadata(), metadata);
    return file->identity();
  };
  EXPECT_TRUE(identity(two).known());
  EXPECT_EQ(identity(two), identity(two));
  EXPECT_NE(identity(two), identity(exchanged));
  EXPECT_NE(identity(two), identity(two, {{"xxh", "1"}}));
  EXPECT_FALSE(identity({}).known());
  EXPECT_EQ(write_safetensors(folder / "w.safetensors", two, {{"xxh64:c", "1"}}).status().code(), Code::invalid_argument);
  const auto foreign = [&](const std::string& metadata) {
    write_text(folder / "f.safetensors",
               file_with("{\"__metadata__\":{" + metadata + R"(},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2));
    return *Safetensors::open(folder.path(), "f.safetensors", {});
  };
  EXPECT_FALSE(foreign(R"("a":"b")").identity().known());
  const Status malformed = [&] {
    write_text(folder / "f.safetensors",
               file_with(R"({"__metadata__":{"xxh64:a":"12"},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2));
    return Safetensors::open(folder.path(), "f.safetensors", {}).status();
  }();
  EXPECT_EQ(malformed.code(), Code::file_corrupt);
  EXPECT_NE(malformed.text().find("the checksum \"12\" of \"a\" is not 16 hexadecimal digits"), std::string::npos) << malformed.text();
  EXPECT_EQ(foreign(R"("xxh64:b":"0123456789abcdef")").metadata().size(), 1u);
  EXPECT_EQ(foreign(R"("xxh64:a":"0123456789abcdef")").tensors()[0].checksum, 0x0123456789abcdefu);
}

// In files of other programs the header may end anywhere, so tensors may start at any byte.
TEST(Safetensors, UnalignedTensorsOfOtherWritersAreRead) {
  const TemporaryFolder folder;
  const std::string header = R"({"x":{"dtype":"F32","shape":[8000],"data_offsets":[0,32000]}})";
  std::string content = file_with(header, 32000);
  const float number = 3.25f;
  std::memcpy(content.data() + 8 + header.size() + 4 * 7999, &number, 4);
  write_text(folder / "w.safetensors", content);
  const auto file = Safetensors::open(folder.path(), "w.safetensors", {});
  ASSERT_TRUE(file.ok()) << file.status().text();
  const auto blob = file->blob(file->tensors()[0]);
  ASSERT_TRUE(blob.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*blob)->data) % 64, 0u);
  EXPECT_EQ(reinterpret_cast<const float*>((*blob)->data)[7999], 3.25f);
}

TEST(Safetensors, DamagedHeadersAreRefused) {
  const std::string tail = R"("shape":[2],"data_offsets":[0,8]}})";
  EXPECT_EQ(code_of(R"({"x":{"dtype":"F32",)" + tail, 8), Code::ok);
  EXPECT_EQ(code_of(R"({"x":{"dtype":"F32",)" + tail, 7), Code::file_truncated);
  EXPECT_EQ(code_of(R"({"x":{"dtype":"F32",)" + tail, 9), Code::file_corrupt);  // bytes of no tensor
  EXPECT_EQ(code_of(R"({"x":{"dtype":"F64",)" + tail, 8), Code::file_corrupt);  // 16 bytes needed
  EXPECT_EQ(code_of(R"({"x":{"dtype":7,)" + tail, 8), Code::file_corrupt);
  EXPECT_EQ(code_of(R"({"x":{)" + tail, 8), Code::file_corrupt);
  EXPECT_EQ(code_of("", 0), Code::file_corrupt);
  EXPECT_EQ(code_of("  {}", 0), Code::file_corrupt);
  EXPECT_EQ(code_of("{", 0), Code::syntax);
  EXPECT_EQ(code_of("{}", 0), Code::ok);
  EXPECT_EQ(code_of("{\"a\":" + std::string(1000, '['), 0), Code::limit_exceeded);
  EXPECT_EQ(code_of(R"({"__metadata__":{"a":1}})", 0), Code::file_corrupt);
  EXPECT_EQ(code_of(R"({"__metadata__":{},"__metadata__":{}})", 0), Code::file_corrupt);
  const auto entry = [](const std::string& name, const std::string& shape, const std::string& offsets) {
    return "\"" + name + R"(":{"dtype":"U8","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
  };
  EXPECT_EQ(code_of("{" + entry("a", "[4]", "[0,4]") + "," + entry("b", "[4]", "[4,8]") + "}", 8), Code::ok);
  EXPECT_EQ(code_of("{" + entry("a", "[4]", "[0,4]") + "," + entry("b", "[4]", "[3,7]") + "}", 7), Code::file_corrupt);  // overlap
  EXPECT_EQ(code_of("{" + entry("a", "[4]", "[0,4]") + "," + entry("b", "[4]", "[5,9]") + "}", 9), Code::file_corrupt);  // hole
  EXPECT_EQ(code_of("{" + entry("a", "[4]", "[0,4]") + "," + entry("a", "[4]", "[4,8]") + "}", 8), Code::duplicate_name);
  EXPECT_EQ(code_of("{" + entry("a", "[-4]", "[0,4]") + "}", 4), Code::file_corrupt);
  EXPECT_EQ(code_of("{" + entry("a", "[4]", "[4,0]") + "}", 4), Code::file_corrupt);
  EXPECT_EQ(code_of("{" + entry("a", "[4]", "[0,99999999999999999999]") + "}", 4), Code::file_corrupt);
  EXPECT_EQ(code_of("{" + entry("a", "[4294967296,4294967296,4294967296]", "[0,4]") + "}", 4), Code::file_corrupt);
  EXPECT_EQ(code_of("{" + entry("a", "[1,1,1,1,1,1,1,1,1]", "[0,1]") + "}", 1), Code::limit_exceeded);
}

TEST(Safetensors, TheHeaderMustFitTheFile) {
  const TemporaryFolder folder;
  const auto code = [&](const std::string& content) {
    write_text(folder / "w.safetensors", content);
    return Safetensors::open(folder.path(), "w.safetensors", {}).status().code();
  };
  EXPECT_EQ(code(""), Code::file_truncated);
  EXPECT_EQ(code(std::string(7, '\0')), Code::file_truncated);
  EXPECT_EQ(code(std::string("\x10\0\0\0\0\0\0\0{}", 10)), Code::file_truncated);
  EXPECT_EQ(code(std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}", 10)), Code::file_corrupt);
  EXPECT_EQ(code(file_with("{}", 0)), Code::ok);
  Limits small;
  small.weight_file_bytes = 5;
  EXPECT_EQ(Safetensors::open(folder.path(), "w.safetensors", small).status().code(), Code::limit_exceeded);
}

TEST(Safetensors, UnknownDTypesAreListedAndRefusedWhenRead) {
  const TemporaryFolder folder;
  write_text(folder / "w.safetensors", file_with(R"({"x":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})", 2));
  const auto file = Safetensors::open(folder.path(), "w.safetensors", {});
  ASSERT_TRUE(file.ok()) << file.status().text();
  EXPECT_EQ(file->tensors()[0].file_dtype, "F8_E4M3");
  EXPECT_EQ(file->blob(file->tensors()[0]).status().code(), Code::unsupported);
}

TEST(Safetensors, BooleansAreZeroOrOne) {
  const TemporaryFolder folder;
  std::string content = file_with(R"({"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2);
  content.back() = 2;
  write_text(folder / "w.safetensors", content);
  const auto file = Safetensors::open(folder.path(), "w.safetensors", {});
  EXPECT_EQ(file->blob(file->tensors()[0]).status().code(), Code::file_corrupt);
}

TEST(Safetensors, TheWriterRefusesWhatCouldNotBeRead) {
  const TemporaryFolder folder;
  const std::byte bytes[8] = {};
  const auto code = [&](std::vector<TensorToWrite> tensors) {
    return write_safetensors(folder / "w.safetensors", tensors).status().code();
  };
  EXPECT_EQ(code({{"a", DType::u8, Shape{1}, bytes}, {"a", DType::u8, Shape{1}, bytes}}), Code::duplicate_name);
  EXPECT_EQ(code({{"__metadata__", DType::u8, Shape{1}, bytes}}), Code::invalid_argument);
  EXPECT_EQ(code({{"a", DType::none, Shape{1}, bytes}}), Code::invalid_argument);
  EXPECT_EQ(code({{"a", DType::u8, Shape{-1}, bytes}}), Code::invalid_argument);
  EXPECT_EQ(code({{"a\xFF", DType::u8, Shape{1}, bytes}}), Code::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(folder / "w.safetensors"));
  EXPECT_EQ(write_safetensors(folder / "absent/w.safetensors", {}).status().code(), Code::file_unwritable);
}

}  // namespace
}  // namespace heddle
