// Training options from the command line: --optimizer, --set, --learning-rate, --schedule, --warm-up, --clip-value, --clip-norm,
// --gradient-norm, --average, --devices, --single, --whole, --combine-statistics.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/command.h"
#include "derive/training_net.h"

namespace heddle::tool {

struct TrainingFlags {
  std::string optimizer = "momentum", schedule = "constant";
  std::vector<std::string> settings;                // NAME=NUMBER
  std::vector<std::string> dense;                   // variables
  std::vector<std::string> devices, single, whole;  // of replicas: where they are; variables and inputs without
  double rate = 0.01, clip_value = 0, clip_norm = 0, average = 0;
  int64_t warm_up = 0, ranks = 1;  // ranks: processes that learn together, for which there is no flag here
  bool combine_statistics = false, gradient_norm = false;

  void declare(CLI::App& app);
  // Refuses these flags for a net that they do not affect. Errors: invalid_argument, where one of them was given; `why`: "net \"a\" ...".
  Status check_not_given(const std::string& why) const;
  // The options that the flags give, for a net whose value `loss` is to be minimised. Errors: syntax, invalid_argument.
  Result<TrainingOptions> options(const std::string& loss) const;
  // Returns `net` with gradients of its value `loss` and updates (derive/training_net.h). Errors: of the flags; those of resolve and
  // training_net.
  Result<Net> learning(const Net& net, const std::string& loss, const CommonOptions& common) const;

 private:
  std::vector<std::string> given_;  // flags
};

}  // namespace heddle::tool
