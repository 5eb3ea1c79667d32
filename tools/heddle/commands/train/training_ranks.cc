// A training by several processes: what each of them has to know before it begins.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>

#include "base/text/text.h"
#include "commands/train/training_job.h"
#include "train/rank_exchange.h"

namespace heddle::tool {

// Options of a rank that writes no files.
TrainArguments TrainingJob::without_files(TrainArguments options) {
  options.log.clear();
  options.curve.clear();
  options.output.clear();
  options.no_output = true;
  options.checkpoint_dir.clear();
  return options;
}

// Checks that the net that learns was made for as many processes as there are.
Status TrainingJob::check_ranks(const std::string& name) const {
  HEDDLE_TRY(const std::optional<RanksOfNet> made, ranks_of(*nets_, name));
  const int64_t ranks = made ? made->ranks : 1;
  if (ranks == place_.size) return {};
  const std::string hint = fmt::format("make it with heddle model --train{}, or give a net that has a loss alone (heddle model --loss)",
                                       place_.size > 1 ? fmt::format(" --ranks {}", place_.size) : std::string());
  if (ranks == 1)
    return {Code::invalid_argument,
            fmt::format("net {} was made to learn in one process, and there are {} ranks", quoted(name), place_.size), hint};
  return {Code::invalid_argument,
          fmt::format("net {} was made to learn in {} processes, and there {}", quoted(name), ranks,
                      place_.size == 1 ? std::string("is one") : fmt::format("are {}", place_.size)),
          place_.size == 1 ? fmt::format("start {} of them with --rendezvous, --rank and --ranks, or {}", ranks, hint) : hint};
}

// Tells all ranks what the checkpoint of rank 0 decides before there is a trainer: others need not see its folder.
Status TrainingJob::agree_on_start() {
  if (place_.size == 1) return {};
  HEDDLE_TRY(start_, RankExchange::create(*session_, "start"));
  if (!start_) return {};
  RunCancellation none;
  const std::string mine = from_ ? fmt::format("{} {}", from_->seed, from_->batch) : std::string();
  HEDDLE_TRY(const std::vector<std::string> all, start_->texts(mine, none), "while the ranks asked rank 0 where the training continues");
  if (start_->is_first() || all[0].empty()) return {};
  const size_t space = all[0].find(' ');
  int64_t batch = 0;
  uint64_t seed = 0;
  std::from_chars(all[0].data(), all[0].data() + all[0].size(), seed);
  if (space != std::string::npos) parse_int(std::string_view(all[0]).substr(space + 1), &batch);
  seed_ = o_.seed.value_or(seed);
  batch_of_first_ = batch;
  return {};
}

// Waits until all ranks have read their data. One that can not tells the others why, which would wait for it until their time-out.
Status TrainingJob::await_ranks() {
  if (!start_) return {};
  RunCancellation none;
  double ready = 1;
  HEDDLE_CHECK(start_->sum({&ready, 1}, none), "while the ranks waited until all had read their data");
  start_.reset();
  return {};
}

Status TrainingJob::wait_for_ranks() {
  Status status = trainer_->wait_for_ranks().during("while the ranks waited until rank 0 had saved what was learned");
  return !status.ok() && interrupting_signal() != 0 ? interruption() : status;
}

Status TrainingJob::told_to_ranks(Status status) {
  if (!status.ok() && start_) start_->leave(fmt::format("its training does not begin: {}", status.diagnostic().message));
  return status;
}

// Says on stdout what this process does, if that is asked for. Others than rank 0 say nothing else.
void TrainingJob::say_rank(const char* does) const {
  if (place_.size == 1 || !o_.verbose) return;
  report_.print(fmt::format("rank {} of {} {} after step {}", place_.rank, place_.size, does, trainer_->steps()));
  std::fflush(stdout);
}

}  // namespace heddle::tool
