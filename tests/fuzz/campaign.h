// The common part of the fuzzers' programs: options, the file that holds the current case, the limits on the time of a case, counting.
//
//   PROGRAM [--seed S] [--cases N] [--seconds T] [--only CASE] [--keep FILE] [--file FILE] [--run]
//
// A case is a function of the seed and its number alone. When the process dies, the current case is in --keep, and its number in a file of
// that name followed by ".txt"; `--only` and `--file` repeat one case. A case that takes more than its limit of processor time is a
// finding, one that takes five times as long ends the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "heddle/status.h"

namespace heddle::fuzz {

struct CampaignOptions {
  uint64_t seed = 1;
  size_t cases = SIZE_MAX;
  double seconds = 60;
  size_t only = SIZE_MAX;
  bool run = false;
  std::string keep;  // empty: nowhere
  std::string file;
};

// Returns false, with the usage on stderr, if the arguments are invalid. `keep` is the default of --keep.
bool parse_options(int count, char** words, const char* keep, CampaignOptions* options);

// The stage at which a case was refused ("" when none refused it), and the error.
struct Ending {
  std::string stage;
  Status status;
};

class Campaign {
 public:
  // `limit_s` is the limit of processor time for one case.
  Campaign(const CampaignOptions& options, double limit_s);
  ~Campaign();
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  // Runs case after case; fails if fewer than `min_through` of a thousand pass all stages, since the fuzzer then tests too little.
  // Otherwise returns 0 if no case was a finding.
  int run(const std::function<Ending(size_t number)>& one_case, size_t min_through);
  // Runs the one case that is in the file of --file.
  int run_file(const std::function<Ending(const std::vector<std::byte>&)>& one_case);
  // Writes the case to --keep. Call it before the case is tried.
  void keep(std::span<const std::byte> bytes) const;
  const CampaignOptions& options() const { return options_; }

 private:
  void measure(size_t number, const std::function<Ending()>& one_case);
  int finish(size_t done) const;

  CampaignOptions options_;
  double limit_s_;
  int keep_ = -1, number_ = -1;
  std::map<std::string, size_t> stages_;
  std::map<Code, size_t> codes_;
  double slowest_ = 0;
  size_t slow_ = 0, through_ = 0, broken_ = 0;
};

}  // namespace heddle::fuzz
