// In what the texts of two ranks differ.
#include "device/collective_comparison.h"

#include <gtest/gtest.h>

namespace heddle {
namespace {

constexpr const char* sum = "heddle::AllReduce(f32[3])\t\"sum\"\n";
constexpr const char* other = "heddle::AllReduce(f64[3])\t\"total\"\n";

TEST(CollectiveComparison, NamesTheFirstCollectiveThatDiffers) {
  const std::string mine = text_to_compare(std::string(sum) + sum);
  EXPECT_EQ(text_difference(mine, text_to_compare(std::string(sum) + other)),
            "its collective 1 is \"total\", heddle::AllReduce(f64[3]), and here it is \"sum\", heddle::AllReduce(f32[3])");
  EXPECT_EQ(text_difference(mine, text_to_compare(sum)), "it has no collective 1, which is here \"sum\", heddle::AllReduce(f32[3])");
  EXPECT_EQ(text_difference(text_to_compare(""), mine), "its collective 0 is \"sum\", heddle::AllReduce(f32[3]), and here there is none");
}

// Names may differ: a net may be written by each rank for itself.
TEST(CollectiveComparison, NamesAreNoDifference) {
  EXPECT_EQ(without_names(text_to_compare("A(f32[1])\t\"a\"\n")), without_names(text_to_compare("A(f32[1])\t\"b\"\n")));
  EXPECT_NE(without_names(text_to_compare("A(f32[1])\t\"a\"\n")), without_names(text_to_compare("A(f32[2])\t\"a\"\n")));
  EXPECT_EQ(text_difference(text_to_compare("A(f32[1])\t\"a\"\n"), text_to_compare("A(f32[1])\t\"b\"\n")),
            "it has the collectives of several communicators in another order");
}

TEST(CollectiveComparison, NamesTheFirstLineOfNetsThatDiffers) {
  const std::string mine = text_to_compare(sum, "n(x: f32[3])\ny: f32[3] = Relu(x)\n");
  EXPECT_EQ(text_difference(mine, text_to_compare(sum, "n(x: f32[3])\ny: f32[3] = Elu(x)\n")),
            "it has \"y: f32[3] = Elu(x)\", and this one has \"y: f32[3] = Relu(x)\"");
  EXPECT_EQ(text_difference(mine, text_to_compare(sum, "n(x: f32[3])\n")), "it has no more, and this one has \"y: f32[3] = Relu(x)\"");
  EXPECT_NE(text_difference(mine, text_to_compare(sum)).find("made for several ranks"), std::string::npos);
  EXPECT_NE(text_difference(text_to_compare(sum), mine).find("made for several ranks"), std::string::npos);
  EXPECT_NE(without_names(mine), without_names(text_to_compare(sum)));
  EXPECT_TRUE(differ_in_nets(mine, text_to_compare(sum, "n(x: f32[3])\n")));
  for (const std::string& text : {mine, text_to_compare(sum), text_to_compare(other, "n(x: f32[3])\n"), std::string()})
    EXPECT_FALSE(differ_in_nets(mine, text)) << text;
}

TEST(CollectiveComparison, NamesVersionsThatDiffer) {
  std::string older = text_to_compare(sum);
  older.replace(0, older.find('\n'), "0.0.9");
  EXPECT_EQ(text_difference(text_to_compare(sum), older),
            "it is version 0.0.9 of the library, and this one " + text_to_compare("").substr(0, text_to_compare("").find('\n')));
}

TEST(CollectiveComparison, TextsOfAnotherKindAreADifferenceToo) {
  for (const std::string& text : {std::string(), std::string("\n"), std::string(3, '\0'), std::string("x\ty")})
    EXPECT_NE(text_difference(text_to_compare(sum), text), "");
}

}  // namespace
}  // namespace heddle
