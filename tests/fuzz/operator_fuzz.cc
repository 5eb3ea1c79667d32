// Single hostile operators: every operator of the registry with attributes, dtypes, ranks, extents and contents of all kinds, prepared, run
// over buffers with guard pages, and run again with another content of its integer inputs. See campaign.h for the options.
#include "fuzz/campaign.h"
#include "fuzz/hostile_operator.h"
#include "fuzz/material.h"
#include "fuzz/session_case.h"
#include "load/save.h"

int main(int count, char** words) {
  using namespace heddle;
  using namespace heddle::fuzz;
  CampaignOptions options;
  if (!parse_options(count, words, "operator_fuzz.case", &options)) return 2;
  const auto registry = cpu_registry();
  const Runtime runtime = cpu_runtime();
  const HostileOperators operators(make_material(*registry));
  std::printf("%zu operators, %zu of them with valid cases to begin from\n", operators.count(), operators.count_with_seeds());
  Campaign campaign(options, 2.0);
  return campaign.run(
      [&](size_t number) {
        Dice dice(options.seed * 0x9E3779B97F4A7C15 + number);
        OperatorCase made = operators.make(number, dice);
        if (const auto bytes = net_to_bytes(made.net); bytes.ok()) campaign.keep(*bytes);
        return run_in_session(runtime, std::move(made.net), made.feeds, dice);
      },
      50);
}
