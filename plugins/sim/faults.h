// Faults that a device is configured to have: by rule, so that a test or a user can place one anywhere in a run and repeat it.
//
//   HEDDLE_SIM_FAULTS=late:MatMul#3,copy@17*2
//
// A rule is KIND[:OPERATOR][@STEP][#FIRST][*TIMES]: of the events that it fits, numbers FIRST (1) to FIRST+TIMES-1 (1) fail. OPERATOR is a
// type ("MatMul"), STEP the number of a step in the plan; both are of the work that is enqueued. Kinds:
//
//   enqueue   the call that enqueues a kernel or a copy fails
//   late      a kernel fails when the stream reaches it
//   copy      a copy fails when the stream reaches it
//   memory    an allocation finds no memory
//   lost      from a kernel or copy on, every request to the device fails
//   silent    a kernel or copy begins and never ends, nor does the work after it on the stream, until it is aborted
//   deaf      the same, and it can't be aborted
//
// and these of the launches of a group, each of which keeps the group from ever beginning; @STEP tells its devices apart:
//
//   missing    the launch on this device is never enqueued; the call fails if none is left
//   swapped    it changes places with the launch of the next group on its stream
//   allocation memory of the device is allocated after it, before the next device's launch; the last one has no launch after it
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace sim {

class Faults {
 public:
  enum class Kind { enqueue, late, copy, memory, lost, silent, deaf, missing, swapped, allocation };
  // The event that is about to happen.
  struct Site {
    const char* operator_name = nullptr;  // of a kernel; null: a copy or an allocation
    uint64_t step = UINT64_MAX;
  };
  // False: `error` describes the mistake in the rules.
  bool parse(const std::string& rules, std::string* error);
  // True if a rule of this kind fits, and it is its turn. Counts. Thread-safe.
  bool strikes(Kind kind, const Site& site);

 private:
  struct Rule {
    Kind kind = Kind::late;
    std::string operator_name;   // empty: any, and copies
    uint64_t step = UINT64_MAX;  // any
    uint64_t first = 1, times = 1;
    uint64_t seen = 0;
  };
  static bool parse_rule(const std::string& text, Rule* rule, std::string* error);

  std::mutex mutex_;
  std::vector<Rule> rules_;
};

}  // namespace sim
