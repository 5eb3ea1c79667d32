#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {
namespace {

TEST(Text, QuotesWhatCouldRewriteATerminalLine) {
  EXPECT_EQ(quoted("a\"b\\c\n"), R"("a\"b\\c\n")");
  EXPECT_EQ(quoted("\x1b[31m"), R"("\u001b[31m")");
  EXPECT_EQ(quoted("\xff"), R"("\udcff")");
  EXPECT_EQ(quoted("\xe2\x80\xae"), R"("\u202e")");  // right-to-left override
  EXPECT_EQ(quoted("é"), "\"é\"");
}

TEST(Text, NearestNamesAreOrderedByDistance) {
  const std::vector<std::string> known = {"Relu", "PRelu", "Conv", "Elu"};
  EXPECT_EQ(nearest("Rellu", known, 2), (std::vector<std::string>{"Relu"}));
  EXPECT_EQ(suggestion("Konv", known), "did you mean \"Conv\"?");
  EXPECT_EQ(suggestion("Frobnicate", known), "");
}

TEST(Text, SizesTakeBinaryAndDecimalUnits) {
  int64_t bytes = 0;
  EXPECT_TRUE(parse_size("512MiB", &bytes) && bytes == 512 << 20);
  EXPECT_TRUE(parse_size("2GB", &bytes) && bytes == 2000000000);
  EXPECT_TRUE(parse_size("64k", &bytes) && bytes == 65536);
  EXPECT_TRUE(parse_size("17", &bytes) && bytes == 17);
  EXPECT_FALSE(parse_size("12XB", &bytes));
  EXPECT_FALSE(parse_size("", &bytes));
  EXPECT_FALSE(parse_size("-1", &bytes));
}

TEST(Text, NumbersReadBackAsThemselves) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(0.1f), "0.1");
  EXPECT_EQ(shortest(-HUGE_VAL), "-inf");
}

TEST(Diagnostic, HasOneLine) {
  Status s(Code::shape_mismatch, "W is [784, 128] but x is [32, 100]", "make the inner dims agree");
  s = std::move(s).at("fc1", "MatMul").in_net("mlp").during("while inferring");
  EXPECT_EQ(
      s.text(),
      "error[shape-mismatch] \"mlp\": \"fc1\" (MatMul): W is [784, 128] but x is [32, 100], while inferring; make the inner dims agree");
}

TEST(Shape, CountsSaturate) {
  EXPECT_EQ((Shape{1 << 30, 1 << 30, 1 << 30}).element_count(), INT64_MAX);
  int64_t bytes = 0;
  EXPECT_FALSE(checked_byte_size(DType::f32, Shape{int64_t{1} << 61}, &bytes));
  EXPECT_TRUE(checked_byte_size(DType::f32, Shape{2, 0}, &bytes) && bytes == 0);
}

}  // namespace
}  // namespace heddle
