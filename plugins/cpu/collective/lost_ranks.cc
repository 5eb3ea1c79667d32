#include "collective/lost_ranks.h"

#include <algorithm>

#include "shared/ranks/rank_list.h"

namespace heddle::cpu {
namespace {

using operators::rank_list;
using operators::RankReport;
using Ranks = std::vector<int32_t>;

bool has(const Ranks& ranks, int32_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// Where a rank is: `"sum" (operation 3)`. There is no number before the first operation: `the connection of its GPUs`.
std::string place_of(const RankReport& report) {
  if (report.number == 0 && !report.collective.empty()) return report.collective;
  if (report.collective.empty()) return "no collective, after operation " + std::to_string(report.number);
  return report.collective + " (operation " + std::to_string(report.number) + ')';
}

bool has_come(const RankReport& report, const RankReport& to) {
  return report.number >= to.number;
}

// Whether a rank has left because of others: it saw connections break, or has waited too long, perhaps for none that it knows.
bool left_for_others(const RankReport& report) {
  return !report.missing.empty() || report.reason == waited_too_long;
}

std::string milliseconds(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + " ms";
}

// The text, found step by step: what one rank knows, and what all have reported.
class Sentence {
 public:
  explicit Sentence(const LostRanks& lost) : lost_(lost), all_(lost.reports) {
    all_.resize(std::max(all_.size(), static_cast<size_t>(lost.rank) + 1));
    all_[static_cast<size_t>(lost.rank)] = lost.mine;
  }
  std::string text() const {
    if (!lost_.unread.empty()) return of_unread();
    const Ranks silent = ranks_with([](const auto& report) { return !report; });
    const std::optional<size_t> leaver = first_leaver();
    // Others may well go on where a rank has closed its session.
    const bool is_closed = leaver && all_[*leaver]->reason == session_closed &&
                           std::none_of(silent.begin(), silent.end(), [&](int32_t rank) { return is_broken(rank); });
    if (!silent.empty() && !is_closed) return of_silent(silent);
    if (leaver) return of_leaving(*leaver);
    const auto late = std::find_if(all_.begin(), all_.end(), [](const auto& report) { return report->reason == waited_too_long; });
    if (late == all_.end()) return of_broken();
    const Ranks slow = ranks_with([&](const auto& report) { return !has_come(*report, **late); });
    return slow.empty() ? of_circle() : of_slow(slow, **late);
  }

 private:
  template <class Has>
  Ranks ranks_with(const Has& holds) const {
    Ranks ranks;
    for (size_t i = 0; i < all_.size(); ++i)
      if (holds(all_[i])) ranks.push_back(static_cast<int32_t>(i));
    return ranks;
  }
  // The first that left for a reason of its own. One that closed its session after the collective that this rank is in, or began next, is
  // none: all went on without it.
  std::optional<size_t> first_leaver() const {
    const uint64_t needed = lost_.mine.collective.empty() ? lost_.mine.number + 1 : lost_.mine.number;
    for (size_t i = 0; i < all_.size(); ++i) {
      const std::optional<RankReport>& report = all_[i];
      if (static_cast<int32_t>(i) == lost_.rank || !report || left_for_others(*report) || report->reason.empty()) continue;
      if (report->reason != session_closed || report->number < needed) return i;
    }
    return {};
  }
  Ranks that_came_to(const RankReport& place) const {
    return ranks_with([&](const auto& report) { return report && has_come(*report, place); });
  }

  // Whether a connection with a rank has broken, for this rank or another one.
  bool is_broken(int32_t rank) const {
    return has(lost_.broken, rank) || std::any_of(all_.begin(), all_.end(), [&](const auto& report) {
             return report && report->reason != waited_too_long && has(report->missing, rank);
           });
  }

  // Reports of others can not be read, so that it is not known who is lost.
  std::string of_unread() const {
    std::string text = lost_.mine.missing.empty() ? "other ranks" : rank_list(lost_.mine.missing);
    text += lost_.mine.reason == waited_too_long ? " did not come within " + milliseconds(lost_.timeout) : " cannot be reached any more";
    return text + ", missing in " + place_of(lost_.mine) + " of " + lost_.communicator +
           "; whether another rank is the cause is not known, because reports of ranks can not be read: " + lost_.unread;
  }

  // These have not answered.
  std::string of_silent(const Ranks& silent) const {
    Ranks ended, others;
    for (const int32_t rank : silent) (is_broken(rank) ? ended : others).push_back(rank);
    const auto each = [](const Ranks& ranks, const char* one, const char* several) {
      return ranks.empty() ? std::string() : rank_list(ranks) + (ranks.size() == 1 ? one : several);
    };
    std::string text = each(ended, " has ended, or cannot be reached any more", " have ended, or cannot be reached any more");
    if (!ended.empty() && !others.empty()) text += ", and ";
    text += each(others, " does not answer", " do not answer");
    if (lost_.mine.collective.empty()) return text + ", missing in " + lost_.communicator;
    text += ", missing in " + place_of(lost_.mine) + " of " + lost_.communicator;
    if (lost_.mine.reason == waited_too_long) text += " after " + milliseconds(lost_.timeout);
    return text + "; " + rank_list(that_came_to(lost_.mine)) + " had come";
  }

  // A rank that waited for no other has left for a reason of its own.
  std::string of_leaving(size_t rank) const {
    std::string text = rank_list({static_cast<int32_t>(rank)}) + " has left " + lost_.communicator + ": " + all_[rank]->reason +
                       "; it was in " + place_of(*all_[rank]);
    if (!lost_.mine.collective.empty()) text += ", this rank in " + place_of(lost_.mine);
    return text;
  }

  // All are there, but some were not in time.
  std::string of_slow(const Ranks& slow, const RankReport& late) const {
    std::string text = rank_list(slow) + " did not come to " + place_of(late) + " of " + lost_.communicator + " within " +
                       milliseconds(lost_.timeout) + "; " + rank_list(that_came_to(late)) + " had come";
    for (const int32_t rank : slow) text += ", " + rank_list({rank}) + " was in " + place_of(*all_[static_cast<size_t>(rank)]);
    return text;
  }

  std::string of_circle() const {
    std::string text = "the ranks of " + lost_.communicator + " wait for each other, since " + milliseconds(lost_.timeout) + ":";
    for (size_t i = 0; i < all_.size(); ++i) {
      text += (i > 0 ? ", " : " ") + rank_list({static_cast<int32_t>(i)}) + " in " + place_of(*all_[i]);
      if (!all_[i]->missing.empty()) text += " for " + rank_list(all_[i]->missing);
    }
    return text + ": the network between them was cut, one was stopped for a while, or they do not run the same net";
  }

  std::string of_broken() const {
    std::string text = "connections of " + lost_.communicator + " have broken:";
    for (size_t i = 0; i < all_.size(); ++i) {
      if (all_[i]->missing.empty()) continue;
      text += (text.back() == ':' ? " " : ", ") + rank_list({static_cast<int32_t>(i)}) + " with " + rank_list(all_[i]->missing) + ", in " +
              place_of(*all_[i]);
    }
    return text;
  }

  const LostRanks& lost_;
  std::vector<std::optional<RankReport>> all_;
};

}  // namespace

std::string text_of(const LostRanks& lost) {
  return Sentence(lost).text();
}

}  // namespace heddle::cpu
