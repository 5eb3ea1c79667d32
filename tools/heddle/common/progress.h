// How far a long work has come: a line on the terminal with count, rate and time left.
#pragma once

#include <cstdint>
#include <string>

#include "common/command.h"

namespace heddle::tool {

// Draws at most five times a second, and only where Report::progress() says so. Not thread-safe.
class Progress {
 public:
  // `what`: "run", of which there are `total`. Draws nothing yet.
  Progress(const Report& report, std::string what, int64_t total);
  // Must be called before each item; `done` of them are finished. `now`: the name of the next, which is drawn at once; else empty.
  void reached(int64_t done, const std::string& now = {});

 private:
  const Report& report_;
  const std::string what_;
  const int64_t total_;
  const uint64_t begun_;  // in ticks
  uint64_t drawn_;
};

// Returns "2 h 5 min" or "12 s".
std::string time_left_text(double seconds);

}  // namespace heddle::tool
