// How many mutants were made, how many of them are equivalent to what they were made from, and how many of the others were found.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace heddle::testing {

// Whether all mutants are tried, or a part of them.
inline const bool all_mutants = std::getenv("HEDDLE_LONG_TESTS") != nullptr;
// The number of schedules or delays in which a mutant has to show.
constexpr uint64_t max_seeds = 100;

enum class MutantFate { equivalent, found, survived };

class MutantTally {
 public:
  // `what` describes the mutant, and is listed if it survives.
  void add(const std::string& kind, MutantFate fate, const std::string& what) {
    auto row = std::find_if(rows_.begin(), rows_.end(), [&](const Row& r) { return r.kind == kind; });
    if (row == rows_.end()) row = rows_.insert(rows_.end(), Row{kind});
    ++row->count[static_cast<size_t>(fate)];
    if (fate == MutantFate::survived) survivors_.push_back(kind + ": " + what);
  }
  void print() const {
    std::printf("%-28s %5s %10s %5s %8s\n", "", "made", "equivalent", "found", "survived");
    Row all{"all"};
    for (const Row& row : rows_) {
      row.print();
      for (size_t i = 0; i < 3; ++i) all.count[i] += row.count[i];
    }
    all.print();
    for (const std::string& survivor : survivors_) std::printf("survived: %s\n", survivor.c_str());
  }
  // The mutants that are wrong.
  size_t wrong() const { return count(MutantFate::found) + count(MutantFate::survived); }
  size_t found() const { return count(MutantFate::found); }

 private:
  struct Row {
    std::string kind;
    size_t count[3] = {};
    void print() const {
      std::printf("%-28s %5zu %10zu %5zu %8zu\n", kind.c_str(), count[0] + count[1] + count[2], count[0], count[1], count[2]);
    }
  };
  size_t count(MutantFate fate) const {
    size_t sum = 0;
    for (const Row& row : rows_) sum += row.count[static_cast<size_t>(fate)];
    return sum;
  }
  std::vector<Row> rows_;
  std::vector<std::string> survivors_;
};

}  // namespace heddle::testing
