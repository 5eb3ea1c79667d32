#include "base/text/text.h"

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

TEST(Text, PrintableEscapesWhatIsHidden) {
  EXPECT_EQ(printable("a\n\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x99\x82 \\ \""), "a\n\xc3\xa9 \xe4\xb8\xad \xf0\x9f\x99\x82 \\ \"");
  EXPECT_EQ(printable_line("a\nb\r\t"), "a\\nb\\u000d\\u0009");
  EXPECT_EQ(printable("\x7f\xc2\x9b\xc2\x80"), "\\u007f\\u009b\\u0080");
  EXPECT_EQ(printable("\xd8\x9c\xe2\x80\x8f\xe2\x81\xa9\xe2\x80\xa8\xef\xbb\xbf"), "\\u061c\\u200f\\u2069\\u2028\\ufeff");
  EXPECT_EQ(printable("\xf3\xa0\x81\x81"), "\\udb40\\udc41");
  EXPECT_EQ(quoted("\xf3\xa0\x81\x81"), "\"\\udb40\\udc41\"");
  // Invalid UTF-8: a byte alone, one that is cut off, too long a form, a surrogate.
  EXPECT_EQ(printable("\xff\xe2\x80"), "\\udcff\\udce2\\udc80");
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80"), "\\udcc0\\udcaf\\udced\\udca0\\udc80");
  EXPECT_EQ(printable(printable("\x1b[31m")), printable("\x1b[31m"));
}

TEST(Text, FilesAreNamedSafely) {
  EXPECT_EQ(file_name_of("conv1.weight"), "conv1.weight");
  EXPECT_EQ(file_name_of("../a/b"), "_._a_b");
  EXPECT_EQ(file_name_of("-rf *"), "_rf _");
  EXPECT_EQ(file_name_of(""), "_");
  EXPECT_EQ(file_name_of("."), "_");
  EXPECT_EQ(file_name_of("\x1b[0m\xff\xe2\x80\xae"), "__0m__");
  EXPECT_EQ(file_name_of("\xc3\xa4"), "\xc3\xa4");
  EXPECT_EQ(file_name_of(std::string(300, 'x')).size(), 200u);
  EXPECT_EQ(file_name_of(std::string(199, 'x') + "\xc3\xa4").size(), 199u) << "no half letter";
}

TEST(Text, HexIsSixteenDigits) {
  uint64_t value = 0;
  EXPECT_TRUE(parse_hex(hex(0x0123456789abcdef), &value) && value == 0x0123456789abcdef);
  for (const char* wrong : {"", "12", "0123456789abcdeg", "-123456789abcdef", "0123456789abcdef0"})
    EXPECT_FALSE(parse_hex(wrong, &value)) << wrong;
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

TEST(Diagnostic, IsOneLineWhateverItTells) {
  Status s(Code::kernel_failed, "the plugin says:\n\x1b[2Jdone \xc2\x9b");
  EXPECT_EQ(std::move(s).in_net("a\nb").text(), "error[kernel-failed] \"a\\nb\": the plugin says:\\n\\u001b[2Jdone \\u009b");
}

TEST(Shape, CountsSaturate) {
  EXPECT_EQ((Shape{1 << 30, 1 << 30, 1 << 30}).element_count(), INT64_MAX);
  int64_t bytes = 0;
  EXPECT_FALSE(checked_byte_size(DType::f32, Shape{int64_t{1} << 61}, &bytes));
  EXPECT_TRUE(checked_byte_size(DType::f32, Shape{2, 0}, &bytes) && bytes == 0);
  // The tensor is empty, but its strides do not fit, in whatever order the extents are.
  EXPECT_FALSE(checked_byte_size(DType::u8, Shape{0, int64_t{1} << 62, 4}, &bytes));
  EXPECT_FALSE(checked_byte_size(DType::u8, Shape{int64_t{1} << 62, 4, 0}, &bytes));
}

}  // namespace
}  // namespace heddle
