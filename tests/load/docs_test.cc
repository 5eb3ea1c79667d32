// docs/net_format.md shows a net as text and the first bytes of its binary form: both match the code.
#include <gtest/gtest.h>

#include <algorithm>

#include "load/load.h"
#include "load/save.h"
#include "load/temporary_folder.h"

namespace heddle {
namespace {

// Returns the text between the first line that begins with `fence` and the next line of ```.
std::string block(const std::string& page, const std::string& fence) {
  const size_t begin = page.find("\n" + fence + "\n") + fence.size() + 2;
  return page.substr(begin, page.find("\n```", begin) + 1 - begin);
}

TEST(Docs, TheNetOnThePageIsReal) {
  const std::string page = testing::read_text(HEDDLE_SOURCE_DIR "/docs/net_format.md");
  const std::string text = block(page, "```json");
  const auto net = load_net_bytes(testing::bytes_of(text), "");
  ASSERT_TRUE(net.ok()) << net.status().text();
  EXPECT_EQ(*net_to_json(*net), text);

  const std::vector<std::byte> bytes = *net_to_bytes(*net);
  std::string hex;
  const std::string dump = block(page, "```");
  for (size_t line = 0; line < dump.size(); line = dump.find('\n', line) + 1) hex += dump.substr(line + 10, 40);
  hex.erase(std::remove(hex.begin(), hex.end(), ' '), hex.end());
  ASSERT_EQ(hex.size(), 160u);
  for (size_t i = 0; i < hex.size() / 2; ++i) EXPECT_EQ(std::stoi(hex.substr(2 * i, 2), nullptr, 16), std::to_integer<int>(bytes[i])) << i;
}

}  // namespace
}  // namespace heddle
