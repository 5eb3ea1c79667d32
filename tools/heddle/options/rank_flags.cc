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

Result<Place> place_by_launcher() {
  if (!rendezvous::started_by_pmix())
    return wrong("--rendezvous pmix: no launcher that speaks PMIx has started this process",
                 "start it with mpirun -n N or srun --mpi=pmix, or give --rendezvous file:DIR --rank R --ranks N");
  Place place;
  const plugin::Status asked = rendezvous::pmix_place(&place.rank, &place.ranks);
  if (asked.code != HEDDLE_OK) return Status(Code::device_failed, fmt::format("--rendezvous: {}", asked.text), "look at the launcher");
  return place;
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
  CommunicatorOptions made;
  made.timeout_ns = static_cast<int64_t>(timeout.value_or(usual_timeout) * 1e9);
  Place place;
  if (rendezvous.empty()) {
    if (ranks.value_or(1) > 1 || (rank && !ranks))
      return wrong(fmt::format("{}: nothing says how the processes find each other",
                               ranks ? fmt::format("--ranks {}", *ranks) : fmt::format("--rank {}", *rank)),
                   "give it --rendezvous pmix, file:DIR or redis:HOST:PORT[/NAME]");
    if (!interface.empty() || timeout)
      return wrong(fmt::format("{}: this process is alone", timeout ? "--timeout" : "--interface"),
                   "leave it out, or give it --rendezvous, --rank and --ranks");
  } else {
    HEDDLE_CHECK(check_form(rendezvous));
  }
  const bool says_nothing = !rank && !ranks;
  const bool asks = rendezvous == by_launcher || (!rendezvous.empty() && says_nothing && rendezvous::started_by_pmix());
  if (asks && !(ranks == 1 && !rendezvous::started_by_pmix())) {
    HEDDLE_TRY(place, place_by_launcher());
    if ((rank && *rank != place.rank) || (ranks && *ranks != place.ranks))
      return wrong(fmt::format("the launcher says that this is rank {} of {}, and the options say {} of {}", place.rank, place.ranks,
                               rank ? fmt::to_string(*rank) : "any", ranks ? fmt::to_string(*ranks) : "any"),
                   "leave --rank and --ranks out");
  } else {
    if (!rendezvous.empty() && (!ranks || (!rank && *ranks > 1)))
      return wrong(fmt::format("--rendezvous: {} not given{}",
                               ranks  ? "--rank is"
                               : rank ? "--ranks is"
                                      : "--rank and --ranks are",
                               says_nothing ? ", and no launcher says them" : ""),
                   "give each process its own --rank, from 0 on, and all the same --ranks");
    place = {static_cast<int32_t>(rank.value_or(0)), static_cast<int32_t>(ranks.value_or(1))};
  }
  if (place.rank >= place.ranks)
    return wrong(fmt::format("--rank {}: there {}, and they are numbered from 0 on", place.rank,
                             place.ranks == 1 ? "is one rank" : fmt::format("are {} ranks", place.ranks)),
                 place.ranks == 1 ? "give it 0" : fmt::format("give a number from 0 to {}", place.ranks - 1));
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
