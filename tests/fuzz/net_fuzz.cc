// Net files, damaged in all ways, from load to compile, and with --run a run. See campaign.h for the options.
#include "fuzz/campaign.h"
#include "fuzz/material.h"
#include "fuzz/net_case.h"

int main(int count, char** words) {
  using namespace heddle::fuzz;
  CampaignOptions options;
  if (!parse_options(count, words, "net_fuzz.case", &options)) return 2;
  const auto registry = cpu_registry();
  const Target target(registry, options.run);
  Campaign campaign(options, 1.0);
  const auto try_file = [&](const Bytes& file) {
    campaign.keep(file);
    const Outcome outcome = target.test(file);
    return Ending{outcome.stopped == Stage::done ? "" : to_string(outcome.stopped), outcome.status};
  };
  if (!options.file.empty()) return campaign.run_file(try_file);
  const Material material = make_material(*registry);
  return campaign.run(
      [&](size_t number) {
        Dice dice(options.seed * 0x9E3779B97F4A7C15 + number);
        return try_file(make_case(material, dice));
      },
      50);
}
