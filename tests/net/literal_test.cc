// Tensor literals as text: every bit pattern reads back, and decimal numbers are rounded once.
#include "net/literal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/half.h"
#include "load/sample_net.h"

namespace heddle {
namespace {

using testing::blob_of;

std::string text_of_blob(const Blob& blob) {
  std::string text;
  append_literal(text, blob);
  return text;
}

Result<std::shared_ptr<const Blob>> parse(const std::string& text, DType dtype, const Shape& shape) {
  HEDDLE_TRY(const JsonDocument document, JsonDocument::parse(text, 4));
  return parse_literal(document.root(), dtype, shape);
}

void expect_reads_back(const Blob& blob) {
  const auto again = parse(text_of_blob(blob), blob.dtype, blob.shape);
  ASSERT_TRUE(again.ok()) << again.status().text();
  ASSERT_EQ((*again)->bytes, blob.bytes);
  EXPECT_EQ(std::memcmp((*again)->data, blob.data, static_cast<size_t>(blob.bytes)), 0);
}

TEST(Literal, EveryHalfReadsBack) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  expect_reads_back(*blob_of(DType::f16, Shape{65536}, all));
  expect_reads_back(*blob_of(DType::bf16, Shape{65536}, all));
}

TEST(Literal, RandomBitsReadBack) {
  std::mt19937_64 random(7);
  std::vector<uint32_t> words(100'000);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random());
  expect_reads_back(*blob_of(DType::f32, Shape{100'000}, words));
  std::vector<uint64_t> longs(100'000);
  for (uint64_t& value : longs) value = random();
  expect_reads_back(*blob_of(DType::f64, Shape{100'000}, longs));
  expect_reads_back(*blob_of(DType::u64, Shape{100'000}, longs));
  expect_reads_back(*blob_of(DType::i64, Shape{100'000}, longs));
}

// Doubles that are integers beyond 2^53 are written as integers.
TEST(Literal, WholeDoublesReadBack) {
  std::vector<double> numbers;
  for (double x = 1; x < 1e30; x *= 3.7) numbers.push_back(std::floor(x));
  expect_reads_back(*blob_of(DType::f64, Shape{static_cast<int64_t>(numbers.size())}, numbers));
}

// Halfway cases round to even, those just above them up. Numbers beyond the largest are refused, not read as infinity.
TEST(Literal, HalvesAreRoundedToNearestEven) {
  const auto bits = [](const char* number, DType dtype) {
    const auto blob = parse(std::string("[") + number + "]", dtype, Shape{1});
    uint16_t value = 0xDEAD;
    if (blob.ok()) std::memcpy(&value, (*blob)->data, 2);
    return value;
  };
  EXPECT_EQ(bits("1.00048828125", DType::f16), 0x3C00);
  EXPECT_EQ(bits("1.0004884", DType::f16), 0x3C01);
  EXPECT_EQ(bits("1.00146484375", DType::f16), 0x3C02);
  EXPECT_EQ(bits("2.98023224e-8", DType::f16), 0x0000);
  EXPECT_EQ(bits("2.9802326e-8", DType::f16), 0x0001);
  EXPECT_EQ(bits("65519", DType::f16), 0x7BFF);
  EXPECT_EQ(bits("65520", DType::f16), 0xDEAD);
  EXPECT_EQ(bits("1.00390625", DType::bf16), 0x3F80);
  EXPECT_EQ(bits("1.01171875", DType::bf16), 0x3F82);
  EXPECT_EQ(f16_of_float(std::numeric_limits<float>::infinity()), 0x7C00);
  EXPECT_EQ(f16_of_float(1e30f), 0x7C00);
}

}  // namespace
}  // namespace heddle
