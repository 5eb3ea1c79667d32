#include "commands/plan/plan_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/text/text.h"

namespace heddle::tool {
namespace {

constexpr size_t max_trace_bytes = size_t{1} << 30;
constexpr int64_t max_ranks = 1 << 20;

// The numbers of a list "1,2.5,3".
Result<std::vector<double>> numbers_of(const std::string& option, const std::string& text, const char* form) {
  std::vector<double> numbers;
  const char *at = text.data(), *const end = text.data() + text.size();
  while (true) {
    double number = 0;
    const auto [after, error] = std::from_chars(at, end, number);
    if (error != std::errc() || !std::isfinite(number) || number < 0 || (after != end && *after != ','))
      return Status(Code::invalid_argument, fmt::format("{} {} is not {}", option, quoted(text), form), "see heddle plan --help");
    numbers.push_back(number);
    if (after == end) return numbers;
    at = after + 1;
  }
}

Result<RankLink> link_of(const std::string& text) {
  constexpr const char* form = "DELAY_US,MB_PER_S[,MESSAGE_US[,PROCESSOR_NS]], as in 50,1250";
  HEDDLE_TRY(const std::vector<double> numbers, numbers_of("--link", text, form));
  if (numbers.size() < 2 || numbers.size() > 4 || numbers[1] <= 0)
    return Status(Code::invalid_argument, fmt::format("--link {} is not {}", quoted(text), form), "see heddle plan --help");
  RankLink link;
  link.delay_ns = static_cast<int64_t>(std::min(numbers[0] * 1e3, 1e15));
  link.ns_per_byte = 1e3 / numbers[1];
  if (numbers.size() > 2) link.message_ns = static_cast<int64_t>(std::min(numbers[2] * 1e3, 1e15));
  if (numbers.size() > 3) link.processor_ns_per_byte = std::min(numbers[3], 1e9);
  return link;
}

// The time of each step by name, from a trace: of several workers the longest.
Result<std::map<std::string, int64_t>> times_of(const std::string& file) {
  HEDDLE_TRY(const FileBytes bytes, read_file(file, max_trace_bytes));
  const char* const text = reinterpret_cast<const char*>(bytes.data.get());
  const Json trace = Json::parse(text, text + bytes.size, nullptr, false);
  const Status wrong(Code::invalid_argument, fmt::format("{} is no trace", quoted(file)), "write one with heddle run --trace");
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array()) return wrong;
  std::map<std::string, int64_t> times;
  for (const Json& event : trace["traceEvents"]) {
    if (!event.is_object() || event.value("ph", Json()) != "X") continue;
    const auto name = event.find("name"), duration = event.find("dur");
    if (name == event.end() || !name->is_string() || duration == event.end() || !duration->is_number()) return wrong;
    int64_t& ns = times[name->get<std::string>()];
    ns = std::max(ns, static_cast<int64_t>(std::clamp(duration->get<double>() * 1e3, 0.0, 1e15)));
  }
  return times;
}

}  // namespace

Result<std::vector<PredictedRanks>> predict_ranks(const PlanInfo& plan, const RankOptions& options, FileRoles& roles) {
  std::vector<PredictedRanks> predicted;
  if (options.ranks.empty()) return predicted;
  HEDDLE_TRY(const std::vector<double> counts, numbers_of("--ranks", options.ranks, "N,N,..., as in 8,64,1024"));
  HEDDLE_TRY(RankLink link, link_of(options.link));
  roles.reads(options.trace);
  HEDDLE_TRY(const auto times, times_of(options.trace));
  std::vector<int64_t> step_ns;
  size_t known = 0;
  for (const PlanInfo::Step& step : plan.steps) {
    const auto time = times.find(step.name);
    known += time != times.end() ? 1 : 0;
    step_ns.push_back(time != times.end() ? time->second : 0);
  }
  if (known == 0)
    return Status(Code::invalid_argument, fmt::format("{} has no step of this plan", quoted(options.trace)),
                  "trace a run of this net, with heddle run --trace");
  for (const double count : counts) {
    if (count < 1 || count > static_cast<double>(max_ranks) || count != std::floor(count))
      return Status(Code::invalid_argument, fmt::format("--ranks: {} is no number of ranks", count),
                    fmt::format("give numbers from 1 to {}", max_ranks));
    link.ranks = static_cast<int>(count);
    predicted.push_back({link, predict_step(plan, step_ns, link)});
  }
  return predicted;
}

Json ranks_json(const std::vector<PredictedRanks>& predicted) {
  Json all = Json::array();
  for (const PredictedRanks& of : predicted)
    all.push_back(
        {{"ranks", of.link.ranks}, {"ns", of.step.ns}, {"communication_ns", of.step.communication_ns}, {"exposed_ns", of.step.exposed_ns}});
  return all;
}

std::string ranks_text(const std::vector<PredictedRanks>& predicted) {
  const RankLink& link = predicted.front().link;
  std::string text = fmt::format(
      "predicted for processes with one thread for steps and one for collectives, which begin at once, have as many rows each, and share\n"
      "nothing but a network with {:.6g} us of delay, {:.6g} MB/s for each and {:.6g} us of work for each message; collectives are "
      "all-reduces\n"
      "of their inputs, but for AllGather:\n",
      static_cast<double>(link.delay_ns) / 1e3, 1e3 / link.ns_per_byte, static_cast<double>(link.message_ns) / 1e3);
  if (link.processor_ns_per_byte > 0)
    text += fmt::format("both threads share a processor, of which each byte received takes {:.6g} ns:\n", link.processor_ns_per_byte);
  for (const PredictedRanks& of : predicted) {
    const auto ms = [](int64_t ns) { return static_cast<double>(ns) / 1e6; };
    text += fmt::format("  {:>5} ranks: {:.3f} ms, of which communication takes {:.3f} ms; {:.3f} ms are exposed\n", of.link.ranks,
                        ms(of.step.ns), ms(of.step.communication_ns), ms(of.step.exposed_ns));
  }
  text.pop_back();
  return text;
}

}  // namespace heddle::tool
