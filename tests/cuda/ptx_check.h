// Finds in PTX the code that NVIDIA's assembler is known to compile wrongly.
//
// ptxas 13.0 treats a 64-bit choice of the smaller or larger of two values, by their lower halves, which is then narrowed to 32 bits, as
// one of 32 bits, and moves only 16 bits of it to where all 32 are read: the upper half is what the register held before. Seen on an H200
// as loops that ran too far and read outside of their input.
#pragma once

#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>

namespace heddle::cuda {

// Returns the instructions that narrow such a choice, with the kernel; empty if there are none.
inline std::string narrowed_choices(const std::string& ptx) {
  static const std::regex kernel(R"(\.visible \.entry (\w+)\()"), narrowed(R"(\s+cvt\.u32\.u64\s+(%r\d+), (%rd\d+);)"),
      compared(R"(\s+setp\.\w+\.[us]32\s+(%p\d+), (%r\d+), (%r\d+);)"), chosen(R"(\s+selp\.b64\s+(%rd\d+), (%rd\d+), (%rd\d+), (%p\d+);)");
  using Pair = std::pair<std::string, std::string>;
  std::string found, name, line;
  std::map<std::string, std::string> lower_half_of;  // 32-bit registers
  std::map<std::string, Pair> compares;              // predicates
  std::map<std::string, bool> chooses;               // 64-bit registers
  std::istringstream lines(ptx);
  while (std::getline(lines, line)) {
    // Most lines match none of these, and a regular expression costs a hundred times what a search for a word does.
    const auto has = [&](const char* word) { return line.find(word) != std::string::npos; };
    if (!has("selp.b64") && !has("setp.") && !has("cvt.u32.u64") && !has(".entry")) continue;
    std::smatch m;
    if (std::regex_search(line, m, kernel)) {
      name = m[1];
      lower_half_of.clear(), compares.clear(), chooses.clear();
    } else if (std::regex_match(line, m, narrowed)) {
      lower_half_of[m[1]] = m[2];
      if (chooses[m[2]]) found += name + ":" + line + "\n";
    } else if (std::regex_match(line, m, compared)) {
      compares[m[1]] = {lower_half_of[m[2]], lower_half_of[m[3]]};
    } else if (std::regex_match(line, m, chosen)) {
      const Pair& by = compares[m[4]];
      chooses[m[1]] = by == Pair(m[2], m[3]) || by == Pair(m[3], m[2]);
    }
  }
  return found;
}

}  // namespace heddle::cuda
