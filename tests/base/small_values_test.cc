// Values that take little room where many are held: Rare and SharedText.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "base/rare.h"
#include "base/text/shared_text.h"
#include "base/text/text.h"

namespace heddle {
namespace {

using Numbers = Rare<std::vector<int>>;

TEST(Rare, IsTheDefaultUntilItIsEdited) {
  Numbers numbers;
  EXPECT_TRUE(numbers->empty());
  numbers.edit().push_back(3);
  EXPECT_EQ(*numbers, std::vector<int>{3});
  EXPECT_TRUE(Numbers()->empty()) << "the default is nobody's to change";
  numbers.reset();
  EXPECT_TRUE(numbers->empty());
  EXPECT_EQ(sizeof(Numbers), sizeof(void*));
}

TEST(Rare, CopiesAreIndependent) {
  Numbers a = std::vector<int>{1}, b = a, c;
  b.edit().push_back(2);
  EXPECT_EQ(a->size(), 1u);
  c = b;
  c = *&c;
  EXPECT_EQ(c, b);
  EXPECT_FALSE(a == b);
  const Numbers moved = std::move(c);
  EXPECT_EQ(moved, b);
  a = Numbers();
  EXPECT_TRUE(a->empty());
  EXPECT_EQ(a, Numbers(std::vector<int>())) << "an empty one of its own is the default, too";
}

TEST(SharedText, ReadsAsAString) {
  const SharedText type = "Relu", same(std::string("Relu")), none;
  const std::string& text = type;
  EXPECT_EQ(text, "Relu");
  EXPECT_EQ(std::string(type) + "6", "Relu6");
  EXPECT_TRUE(type == same && type == "Relu" && "Relu" == type && type == text && type == std::string_view("Relu"));
  EXPECT_TRUE(type != none && none < type && none == "" && none.empty());
  EXPECT_EQ(fmt::format("{:>6}|{}", type, none), "  Relu|");
  EXPECT_EQ(quoted(type), "\"Relu\"");
  EXPECT_EQ(sizeof(SharedText), sizeof(void*));
}

TEST(SharedText, CopiesShareWhatLivesAsLongAsAnyOfThem) {
  SharedText copy;
  const char* where = nullptr;
  {
    const SharedText first = "a text that is too long for a string to hold it in itself";
    where = first.c_str();
    copy = first;
  }
  EXPECT_EQ(copy.c_str(), where);
  EXPECT_EQ(copy.size(), 57u);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([copy] {
      for (int i = 0; i < 10'000; ++i) {
        const SharedText own = copy;
        ASSERT_FALSE(own.empty());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(copy.c_str(), where);
}

}  // namespace
}  // namespace heddle
