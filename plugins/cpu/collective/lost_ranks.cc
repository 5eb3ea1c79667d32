#include "collective/lost_ranks.h"

#include <algorithm>

namespace heddle::cpu {
namespace {

using operators::RankReport;

bool has(const std::vector<int32_t>& ranks, int32_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// Where a rank is: `"sum" (operation 3)`.
std::string place_of(const RankReport& report) {
  if (report.collective.empty()) return "no collective, after " + std::to_string(report.number);
  return report.collective + " (operation " + std::to_string(report.number) + ')';
}

// The ranks that have come as far as `mine`, of those that have answered.
std::vector<int32_t> ranks_that_came(const LostRanks& lost) {
  std::vector<int32_t> came;
  for (size_t i = 0; i < lost.reports.size(); ++i) {
    const std::optional<RankReport>& report = lost.reports[i];
    if (static_cast<int32_t>(i) == lost.rank ||
        (report && (report->number > lost.mine.number || (report->number == lost.mine.number && !report->collective.empty()))))
      came.push_back(static_cast<int32_t>(i));
  }
  return came;
}

std::string milliseconds(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) + " ms";
}

// The ranks that have not answered are lost.
std::string of_silent(const LostRanks& lost, const std::vector<int32_t>& silent) {
  std::vector<int32_t> ended, others;
  for (const int32_t rank : silent) (has(lost.broken, rank) ? ended : others).push_back(rank);
  const auto each = [](const std::vector<int32_t>& ranks, const char* one, const char* several) {
    return list_of(ranks) + (ranks.size() == 1 ? one : several);
  };
  std::string text;
  if (!ended.empty()) text = each(ended, " has ended, or its connections are cut", " have ended, or their connections are cut");
  if (!others.empty()) text += (text.empty() ? "" : ", and ") + each(others, " does not answer", " do not answer");
  if (lost.mine.collective.empty()) return text;
  text += ", missing in " + place_of(lost.mine);
  if (lost.late) text += " after " + milliseconds(lost.timeout);
  return text + "; " + list_of(ranks_that_came(lost)) + " had come";
}

}  // namespace

std::string list_of(const std::vector<int32_t>& ranks) {
  if (ranks.empty()) return "no rank";
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

std::string text_of(const LostRanks& lost) {
  const std::string in = lost.communicator + ": ";
  std::vector<int32_t> silent;
  for (size_t i = 0; i < lost.reports.size(); ++i)
    if (static_cast<int32_t>(i) != lost.rank && !lost.reports[i]) silent.push_back(static_cast<int32_t>(i));
  if (!silent.empty()) return in + of_silent(lost, silent);
  // All are there. One that waited for nothing has left of its own will.
  for (size_t i = 0; i < lost.reports.size(); ++i) {
    const auto rank = static_cast<int32_t>(i);
    if (rank == lost.rank || !lost.reports[i]->missing.empty() || lost.reports[i]->reason.empty()) continue;
    std::string text = in + list_of({rank}) + " has left: " + lost.reports[i]->reason + ", at " + place_of(*lost.reports[i]);
    if (!lost.mine.collective.empty()) text += "; this rank is in " + place_of(lost.mine);
    return text;
  }
  std::string text = in;
  if (lost.late) text += "after " + milliseconds(lost.timeout) + ' ';
  text += "ranks wait for each other: ";
  for (size_t i = 0; i < lost.reports.size(); ++i) {
    const auto rank = static_cast<int32_t>(i);
    const RankReport& report = rank == lost.rank ? lost.mine : *lost.reports[i];
    text += (i > 0 ? ", " : "") + list_of({rank}) + " is in " + place_of(report);
    if (!report.missing.empty()) text += " and misses " + list_of(report.missing);
  }
  return text;
}

}  // namespace heddle::cpu
