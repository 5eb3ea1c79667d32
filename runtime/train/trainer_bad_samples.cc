#include <fmt/format.h>

#include <utility>

#include "base/text/option_names.h"
#include "train/trainer_state.h"

namespace heddle {
namespace {

// Returns the error of a training that ends with a sample that can not be read.
Status ended_by(const BadSample& bad, const std::string& name, const std::string& what, Hint hint) {
  Status ended(bad.error.code(), fmt::format("{}, the last one of them is sample {}: {}", what, name, bad.error.diagnostic().message),
               std::move(hint));
  ended.diagnostic().context = bad.error.diagnostic().context;
  return ended;
}

}  // namespace

// Reader threads find bad samples in any order. Here they come in the order of the steps, and of the places in a batch.
Status Trainer::State::take_bad(const SampleBatch& read, const FedNet& net, std::set<int64_t>& counted, const std::string& during) {
  for (const BadSample& bad : read.bad) {
    if (counted.count(bad.sample) != 0) continue;
    const std::string name = net.data().sample_name(bad.sample);
    if (bad_samples == options.max_bad_samples)  // not counted, so that the next call ends here too
      return ended_by(bad, name, fmt::format("{} samples can't be read, and {} may be left out", bad_samples + 1, bad_samples),
                      hint_with("mend them, or let more be left out with ", option_names::max_bad_samples))
          .during(during);
    counted.insert(bad.sample);
    ++bad_samples;
    if (options.on_bad_sample) HEDDLE_CHECK(options.on_bad_sample(name, Status(bad.error).during(during)));
  }
  if (!read.samples.empty() || read.bad.empty()) return {};
  return ended_by(read.bad.back(), net.data().sample_name(read.bad.back().sample),
                  fmt::format("none of the {} samples of the batch can be read", read.bad.size()),
                  "mend them, or make batches larger, so that each has samples that can be read")
      .during(during);
}

// Makes the means, which were of all samples, those of the ones that were read. A net without weights has counted others in the places of
// the bad ones.
void Trainer::State::leave_out_bad(Evaluation* of, int64_t bad) const {
  if (bad == 0) return;
  const auto all = static_cast<double>(of->samples);
  of->samples -= bad;
  if (!tester->has_weights()) return;
  for (auto& [name, mean] : of->means) mean *= all / static_cast<double>(of->samples);
}

}  // namespace heddle
