#include "options/rank_flags.h"

#include <fmt/format.h>

#include "base/text/text.h"
#include "rendezvous/job_store.h"
#include "rendezvous/pmix_place.h"

namespace heddle::tool {
namespace {

constexpr const char* by_launcher = "pmix";
constexpr double usual_timeout = 30, longest_timeout = 1e8;  // seconds; the latter is three years

struct Place {
  int32_t rank = 0, ranks = 1;
};

Status wrong(std::string what, std::string hint) {
  return {Code::invalid_argument, std::move(what), std::move(hint)};
}

// Returns what the launcher says. Options may say the same.
Result<Place> place_by_launcher(const RankFlags& flags) {
  if (!rendezvous::started_by_pmix())
    return wrong("--rendezvous pmix: no launcher that speaks PMIx has started this process",
                 "start it with mpirun -n N or srun --mpi=pmix, or give --rendezvous file:DIR --rank R --ranks N");
  Place place;
  const plugin::Status asked = rendezvous::pmix_place(&place.rank, &place.ranks);
  if (asked.code != HEDDLE_OK) return Status(Code::device_failed, fmt::format("--rendezvous: {}", asked.text), "look at the launcher");
  if (flags.rank.value_or(place.rank) == place.rank && flags.ranks.value_or(place.ranks) == place.ranks) return place;
  return wrong(fmt::format("the launcher says that this is rank {} of {}, and the options say {} of {}", place.rank, place.ranks,
                           flags.rank ? fmt::to_string(*flags.rank) : "any", flags.ranks ? fmt::to_string(*flags.ranks) : "any"),
               "leave --rank and --ranks out");
}

// Returns what the options say. Without a rendezvous the process is alone.
Result<Place> place_by_options(const RankFlags& flags) {
  const char* const hint = "give each process its own --rank, from 0 on, and all the same --ranks";
  if (!flags.rendezvous.empty() && !flags.ranks && !flags.rank)
    return wrong("--rendezvous: --rank and --ranks are not given, and no launcher says them", hint);
  if (!flags.rendezvous.empty() && !flags.ranks) return wrong("--rendezvous: --ranks is not given", hint);
  if (!flags.rendezvous.empty() && !flags.rank && *flags.ranks > 1) return wrong("--rendezvous: --rank is not given", hint);
  const Place place = {static_cast<int32_t>(flags.rank.value_or(0)), static_cast<int32_t>(flags.ranks.value_or(1))};
  if (place.rank < place.ranks) return place;
  if (place.ranks == 1) return wrong(fmt::format("--rank {}: there is one rank, and they are numbered from 0 on", place.rank), "give it 0");
  return wrong(fmt::format("--rank {}: there are {} ranks, and they are numbered from 0 on", place.rank, place.ranks),
               fmt::format("give a number from 0 to {}", place.ranks - 1));
}

// Whether the launcher says which process this is: with pmix, and with the others where no option does.
bool asks_launcher(const RankFlags& flags) {
  const bool is_started = rendezvous::started_by_pmix();
  if (flags.rendezvous == by_launcher) return is_started || flags.ranks != 1;
  return is_started && !flags.rendezvous.empty() && !flags.rank && !flags.ranks;
}

// Without a rendezvous nothing may ask for other processes.
Status check_alone(const RankFlags& flags) {
  if (flags.ranks.value_or(1) > 1 || (flags.rank && !flags.ranks))
    return wrong(fmt::format("{}: nothing says how the processes find each other",
                             flags.ranks ? fmt::format("--ranks {}", *flags.ranks) : fmt::format("--rank {}", *flags.rank)),
                 "give it --rendezvous pmix, file:DIR or redis:HOST:PORT[/NAME]");
  if (flags.interface.empty() && !flags.timeout) return {};
  return wrong(fmt::format("{}: this process is alone", flags.timeout ? "--timeout" : "--interface"),
               "leave it out, or give it --rendezvous, --rank and --ranks");
}

// Another form would be found when the ranks meet, after the data are read.
Status check_form(const std::string& text) {
  const plugin::Status form = rendezvous::check_rendezvous(text);
  return form.code == HEDDLE_OK ? Status() : wrong(fmt::format("--rendezvous: {}", form.text), "docs/distributed.md shows one of each");
}

}  // namespace

void RankFlags::declare(CLI::App& app) {
  app.add_option("--rendezvous", rendezvous, "how the processes of a training find each other: pmix, file:DIR, redis:HOST:PORT[/NAME]")
      ->type_name("WHERE")
      ->check(not_empty());
  app.add_option("--rank", rank, "which of these processes this one is, from 0 on; else as mpirun or srun says")
      ->type_name("R")
      ->check(whole_number(INT32_MAX));
  app.add_option("--ranks", ranks, "how many processes there are; else as mpirun or srun says")
      ->type_name("N")
      ->check(whole_number(INT32_MAX, 1));
  app.add_option("--interface", interface, "the network interface that they connect by; else loopback, this machine alone")
      ->type_name("NAME")
      ->check(not_empty());
  app.add_option("--timeout", timeout, "seconds that a process waits for the others (30)")
      ->type_name("SECONDS")
      ->check(number_from(1e-3, longest_timeout));
}

Result<CommunicatorOptions> RankFlags::place() const {
  HEDDLE_CHECK(rendezvous.empty() ? check_alone(*this) : check_form(rendezvous));
  HEDDLE_TRY(const Place place, asks_launcher(*this) ? place_by_launcher(*this) : place_by_options(*this));
  CommunicatorOptions made;
  made.timeout_ns = static_cast<int64_t>(timeout.value_or(usual_timeout) * 1e9);
  made.rank = place.rank;
  made.size = place.ranks;
  if (place.ranks == 1) return made;
  made.rendezvous = rendezvous;
  if (!interface.empty()) made.rendezvous += ",interface=" + interface;
  return made;
}

int64_t RankFlags::started_together() {
  Place place;
  if (!rendezvous::started_by_pmix() || rendezvous::pmix_place(&place.rank, &place.ranks).code != HEDDLE_OK) return 1;
  return place.ranks;
}

}  // namespace heddle::tool
