#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/text/text.h"
#include "heddle/derivation.h"
#include "net/call_text.h"

namespace heddle {
namespace {

Status not_one(std::string_view text) {
  return {Code::invalid_argument, fmt::format("{} is no schedule", quoted(std::string(text))),
          "write constant, step(every, gamma), exponential(gamma), polynomial(steps, power, end) or cosine(steps, end)"};
}

constexpr double max_rate = std::numeric_limits<float>::max();  // updates take it as f32

// Text from which an expression reads the number back with all its bits.
std::string number(double value) {
  return fmt::format("{:.17g}", value);
}

}  // namespace

Result<LearningRate> LearningRate::parse(double rate, std::string_view schedule, int64_t warm_up) {
  const auto bad = [](std::string what) { return Status(Code::invalid_argument, std::move(what), "give positive numbers"); };
  if (!(rate >= 0) || rate > max_rate) return bad(fmt::format("a learning rate of {}", rate));
  if (warm_up < 0) return bad(fmt::format("a warm-up of {} steps", warm_up));
  const std::optional<CallText> parsed = CallText::parse(schedule);
  if (!parsed) return not_one(schedule);
  std::vector<double> n;
  for (const std::string& word : parsed->words) {
    const std::optional<double> value = CallText::number(word);
    if (!value) return not_one(schedule);
    n.push_back(*value);
  }
  const auto ends_well = [](double end) { return end >= 0 && end <= max_rate; };
  LearningRate made;
  made.rate_ = rate;
  made.warm_up_ = warm_up;
  const auto part = [&](double steps) { return fmt::format("min(x0, {0}) / {0}", number(steps)); };
  const auto between = [&](double end, const std::string& factor) {
    return fmt::format("{} + {} * ({})", number(end), number(rate - end), factor);
  };
  if (parsed->name == "constant" && n.empty()) return made;
  if (parsed->name == "step" && n.size() == 2) {
    if (n[0] < 1 || n[1] <= 0) return bad(fmt::format("{}: every and gamma", schedule));
    made.varying_ = fmt::format("{} * pow({}, floor(x0 / {}))", number(rate), number(n[1]), number(n[0]));
  } else if (parsed->name == "exponential" && n.size() == 1) {
    if (n[0] <= 0) return bad(fmt::format("{}: gamma", schedule));
    made.varying_ = fmt::format("{} * pow({}, x0)", number(rate), number(n[0]));
  } else if (parsed->name == "polynomial" && !n.empty() && n.size() <= 3) {
    if (n[0] < 1) return bad(fmt::format("{}: steps", schedule));
    if (n.size() > 1 && n[1] <= 0) return bad(fmt::format("{}: power", schedule));
    if (n.size() > 2 && !ends_well(n[2])) return bad(fmt::format("{}: end", schedule));
    made.varying_ = between(n.size() > 2 ? n[2] : 0, fmt::format("pow(1 - {}, {})", part(n[0]), number(n.size() > 1 ? n[1] : 1)));
  } else if (parsed->name == "cosine" && !n.empty() && n.size() <= 2) {
    if (n[0] < 1) return bad(fmt::format("{}: steps", schedule));
    if (n.size() > 1 && !ends_well(n[1])) return bad(fmt::format("{}: end", schedule));
    made.varying_ = between(n.size() > 1 ? n[1] : 0, fmt::format("(1 + cos({} * {})) / 2", number(M_PI), part(n[0])));
  } else {
    return not_one(schedule);
  }
  return made;
}

std::string LearningRate::program() const {
  const std::string rate = varying_.empty() ? number(rate_) : varying_;
  return warm_up_ == 0 ? rate : fmt::format("({}) * min(1, (x0 + 1) / {})", rate, number(static_cast<double>(warm_up_)));
}

}  // namespace heddle
