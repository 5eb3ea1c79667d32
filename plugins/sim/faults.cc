#include "faults.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace sim {
namespace {

constexpr std::pair<const char*, Faults::Kind> kinds[] = {{"enqueue", Faults::Kind::enqueue}, {"late", Faults::Kind::late},
                                                          {"copy", Faults::Kind::copy},       {"memory", Faults::Kind::memory},
                                                          {"lost", Faults::Kind::lost},       {"silent", Faults::Kind::silent},
                                                          {"deaf", Faults::Kind::deaf},       {"missing", Faults::Kind::missing},
                                                          {"swapped", Faults::Kind::swapped}, {"allocation", Faults::Kind::allocation}};

std::string names_of_kinds() {
  std::string names;
  for (const auto& kind : kinds) names += std::string(names.empty() ? "" : ", ") + kind.first;
  return names;
}

// Parses the number that follows a mark; false: there is none.
bool parse_number(const std::string& text, uint64_t* number) {
  if (text.empty() || text.size() > 19) return false;
  *number = 0;
  for (const char c : text) {
    if (!std::isdigit(static_cast<unsigned char>(c))) return false;
    *number = *number * 10 + static_cast<uint64_t>(c - '0');
  }
  return true;
}

}  // namespace

bool Faults::parse_rule(const std::string& text, Rule* rule, std::string* error) {
  constexpr const char* marks = ":@#*";
  size_t end = text.find_first_of(marks);
  const std::string name = text.substr(0, end);
  bool known = false;
  for (const auto& [kind_name, kind] : kinds)
    if (name == kind_name) rule->kind = kind, known = true;
  if (!known) return *error = "\"" + name + "\" is no kind of fault: " + names_of_kinds(), false;
  while (end != std::string::npos) {
    const char mark = text[end];
    const size_t begin = end + 1;
    end = text.find_first_of(marks, begin);
    const std::string value = text.substr(begin, end == std::string::npos ? end : end - begin);
    bool good = !value.empty();
    if (mark == ':')
      rule->operator_name = value;
    else
      good = parse_number(value, mark == '@' ? &rule->step : mark == '#' ? &rule->first : &rule->times);
    if (!good) return *error = "\"" + text + "\": what follows \"" + mark + "\" is no " + (mark == ':' ? "operator" : "number"), false;
  }
  return true;
}

bool Faults::parse(const std::string& rules, std::string* error) {
  for (size_t begin = 0; begin < rules.size();) {
    const size_t comma = std::min(rules.find(',', begin), rules.size());
    Rule rule;
    if (!parse_rule(rules.substr(begin, comma - begin), &rule, error)) return false;
    rules_.push_back(std::move(rule));
    begin = comma + 1;
  }
  return true;
}

bool Faults::strikes(Kind kind, const Site& site) {
  const std::lock_guard<std::mutex> lock(mutex_);
  bool strikes = false;
  for (Rule& rule : rules_) {
    if (rule.kind != kind || (rule.step != UINT64_MAX && rule.step != site.step)) continue;
    if (!rule.operator_name.empty() && (!site.operator_name || rule.operator_name != site.operator_name)) continue;
    ++rule.seen;
    strikes = strikes || (rule.seen >= rule.first && rule.seen - rule.first < rule.times);
  }
  return strikes;
}

}  // namespace sim
