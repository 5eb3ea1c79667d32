// .npy files in every order of axes and of bytes that NumPy writes.
#include "tensors/npy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "load/temporary_folder.h"

namespace heddle::tool {
namespace {

std::string npy(const std::string& descr, const std::string& fortran_order, const std::string& shape, const std::string& content) {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + fortran_order + ", 'shape': (" + shape + "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  return file + header + content;
}

// The bytes of i32 numbers, in the requested order.
std::string i32s(const std::vector<int32_t>& values, bool big_endian) {
  std::string bytes;
  for (const int32_t value : values) {
    std::string one(reinterpret_cast<const char*>(&value), 4);
    if (big_endian) std::reverse(one.begin(), one.end());
    bytes += one;
  }
  return bytes;
}

class Npy : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const Blob>> read(const std::string& content) {
    std::ofstream(folder_ / "a.npy", std::ios::binary) << content;
    return read_npy((folder_ / "a.npy").string());
  }
  std::vector<int32_t> read_i32(const std::string& content, const Shape& shape) {
    const auto blob = read(content);
    EXPECT_TRUE(blob.ok()) << blob.status().text();
    if (!blob.ok()) return {};
    EXPECT_EQ((*blob)->dtype, DType::i32);
    EXPECT_EQ((*blob)->shape, shape);
    const auto* const data = reinterpret_cast<const int32_t*>((*blob)->data);
    return {data, data + shape.element_count()};
  }

 private:
  const testing::TemporaryFolder folder_;
};

TEST_F(Npy, EitherOrderOfAxesAndOfBytesIsTheSameArray) {
  const std::vector<int32_t> rows = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
  std::vector<int32_t> columns(24);  // of [2, 3, 4]: the first index runs fastest
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 3; ++j)
      for (size_t k = 0; k < 4; ++k) columns[i + 2 * j + 6 * k] = rows[i * 12 + j * 4 + k];
  for (const bool big : {false, true}) {
    const std::string descr = big ? ">i4" : "<i4";
    EXPECT_EQ(read_i32(npy(descr, "False", "2, 3, 4", i32s(rows, big)), Shape{2, 3, 4}), rows) << descr;
    EXPECT_EQ(read_i32(npy(descr, "True", "2, 3, 4", i32s(columns, big)), Shape{2, 3, 4}), rows) << descr;
  }
  EXPECT_EQ(read_i32(npy("=i4", "True", "3,", i32s({7, 8, 9}, false)), Shape{3}), (std::vector<int32_t>{7, 8, 9}));
}

TEST_F(Npy, EmptyAndScalarArraysHaveNoOrder) {
  EXPECT_EQ(read_i32(npy(">i4", "True", "", i32s({5}, true)), Shape{}), std::vector<int32_t>{5});
  EXPECT_TRUE(read_i32(npy(">i4", "True", "2, 0, 3", ""), Shape{2, 0, 3}).empty());
}

TEST_F(Npy, OneByteHasNoOrder) {
  for (const char* descr : {"|u1", ">u1", "<u1"}) {
    const auto blob = read(npy(descr, "False", "3,", "abc"));
    ASSERT_TRUE(blob.ok()) << blob.status().text();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>((*blob)->data), 3), "abc") << descr;
  }
}

TEST_F(Npy, WhatIsNoNumberIsNamed) {
  for (const char* descr : {"<c8", "|O", "<U4", "<M8[ns]", "x", "", "<f16"}) {
    const Status status = read(npy(descr, "False", "1,", "12345678")).status();
    EXPECT_EQ(status.code(), Code::unsupported) << descr;
    EXPECT_NE(status.text().find("has element type"), std::string::npos) << status.text();
  }
  EXPECT_EQ(read(npy("<i4", "Maybe", "1,", "1234")).status().code(), Code::syntax);
}

}  // namespace
}  // namespace heddle::tool
