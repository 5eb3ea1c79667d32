#include "device/collective_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/library_version.h"
#include "base/text/text.h"

namespace heddle {
namespace {

constexpr uint64_t longest_text = uint64_t{64} << 20;
constexpr const char* another_order = "it has the collectives of several communicators in another order";
constexpr std::string_view net_follows = "net";  // a line; those of collectives have a tab

// The next line of `text`, which begins after it then.
std::string_view next_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// One collective of a text: what all ranks have alike, and its name.
struct Line {
  explicit Line(std::string_view line) : alike(line.substr(0, line.find('\t'))) {
    name = alike.size() < line.size() ? line.substr(alike.size() + 1) : line;
  }
  std::string text() const { return fmt::format("{}, {}", name, alike); }
  std::string_view alike, name;
};

}  // namespace

std::string text_to_compare(const std::string& collectives, const std::string& net) {
  return net.empty() ? fmt::format("{}\n{}", library_version(), collectives)
                     : fmt::format("{}\n{}{}\n{}", library_version(), collectives, net_follows, net);
}

std::string without_names(const std::string& text) {
  std::string alike;
  for (std::string_view rest = text; !rest.empty();) alike.append(Line(next_line(rest)).alike) += '\n';
  return alike;
}

// Texts of one length: that of the longest.
Result<std::vector<std::string>> exchange_texts(const Resource& object, const std::string& mine, size_t size, uint64_t deadline_ticks) {
  HEDDLE_TRY(const std::vector<uint64_t> lengths, object.exchange(mine.size(), size, deadline_ticks));
  const uint64_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  if (lengths.size() != size || longest > longest_text || lengths.end() == std::find(lengths.begin(), lengths.end(), mine.size()))
    return Status(Code::device_failed, "another rank does not say which collectives it runs");
  std::string padded = mine;
  padded.resize(longest);
  HEDDLE_TRY(const std::string all, object.exchange(padded, size, deadline_ticks));
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < size; ++rank) texts.push_back(all.substr(rank * longest, std::min(lengths[rank], longest)));
  return texts;
}

std::string net_difference(const std::string& whose, std::string_view net, const std::string& other_whose, std::string_view other_net) {
  const auto shown = [](std::string_view line) { return line.empty() ? std::string("no more") : quoted(std::string(line)); };
  while (!net.empty() || !other_net.empty()) {
    const std::string_view line = next_line(net), other = next_line(other_net);
    if (line != other) return fmt::format("{} has {}, and {} has {}", whose, shown(line), other_whose, shown(other));
  }
  return "their nets are alike";
}

bool differ_in_nets(const std::string& mine, const std::string& theirs) {
  std::string_view here = mine, there = theirs;
  while (!here.empty()) {
    const Line own(next_line(here));
    if (own.alike != Line(next_line(there)).alike) return false;
    if (own.alike == net_follows) return here != there;
  }
  return false;
}

std::string text_difference(const std::string& mine, const std::string& theirs) {
  std::string_view here = mine, there = theirs;
  const std::string_view version = next_line(here), other = next_line(there);
  if (version != other) return fmt::format("it is version {} of the library, and this one {}", other, version);
  for (size_t number = 0; !here.empty() || !there.empty(); ++number) {
    const Line own(next_line(here)), its(next_line(there));
    if (own.alike == net_follows && its.alike == net_follows)
      return here != there ? net_difference("it", there, "this one", here) : std::string(another_order);
    if (own.alike == its.alike) continue;
    for (const Line& line : {own, its})
      if (line.alike == net_follows)
        return "one of the two nets was made for several ranks, and the other was not, or has other collectives";
    if (its.alike.empty()) return fmt::format("it has no collective {}, which is here {}", number, own.text());
    if (own.alike.empty()) return fmt::format("its collective {} is {}, and here there is none", number, its.text());
    return fmt::format("its collective {} is {}, and here it is {}", number, its.text(), own.text());
  }
  return another_order;
}

}  // namespace heddle
