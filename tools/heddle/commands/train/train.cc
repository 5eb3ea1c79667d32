// train: a net learns from data.
#include <fmt/format.h>

#include <climits>

#include "commands/commands.h"
#include "commands/train/training_job.h"

namespace heddle::tool {
namespace {

Status check_not_there(const TrainArguments& o) {
  const std::pair<const char*, bool> options[] = {
      {"--accumulate", !o.accumulate.empty()},
      {"--precision", !o.precision.empty()},
  };
  for (const auto& [name, given] : options)
    if (given) return {Code::not_implemented, fmt::format("{} does not work yet", name), "leave it out"};
  return {};
}

// Processes that mpirun has started without a rendezvous would all train alone, and write the same files.
void warn_of_lonely_processes(const TrainArguments& o, Report& report) {
  if (!o.ranks.rendezvous.empty()) return;
  const int64_t others = RankFlags::started_together();
  if (others == 1) return;
  Diagnostic warning;
  warning.severity = Severity::warning;
  warning.code = Code::invalid_argument;
  warning.message = fmt::format("a launcher has started {} processes, and each of them trains alone", others);
  warning.hint = "let them train together with --rendezvous pmix";
  report.diagnose(warning);
}

Status train(const TrainArguments& o, Report& report) {
  HEDDLE_CHECK(check_not_there(o));
  if (o.steps == 0 && o.epochs == 0)
    return {Code::invalid_argument, "nothing says when the training is over", "give it --steps N or --epochs N"};
  if (!o.samples.ragged.empty() && !o.training.devices.empty())
    return {Code::not_implemented, "--ragged does not work with --devices yet: replicas divide the values and not the samples",
            "leave one of them out"};
  HEDDLE_TRY(const CommunicatorOptions place, o.ranks.place());
  if (o.batch > 0 && o.batch < place.size)  // before they meet: their number may be a slip
    return {Code::invalid_argument, fmt::format("--batch: a batch has {} samples, and there are {} ranks", o.batch, place.size),
            "give each rank one sample at least"};
  if (place.rank > 0) report.common.quiet = true;  // rank 0 says what all do
  warn_of_lonely_processes(o, report);
  TrainingJob job(o, place, report);
  HEDDLE_CHECK(job.begin());
  Status status = job.run();
  job.describe();
  // The result so far is worth keeping, unless it has numbers that are not finite.
  if (!status.ok() && (status.code() == Code::numerics || !job.has_learned())) {
    if (const Status drawn = job.draw(); !drawn.ok()) report.diagnose(drawn.diagnostic());
    return status;
  }
  const Status saved = job.save();
  if (!status.ok() && !saved.ok()) report.diagnose(saved.diagnostic());
  HEDDLE_CHECK(status);
  HEDDLE_CHECK(saved);
  return job.wait_for_ranks();
}

void declare_checkpoints(CLI::App& app, TrainArguments& o) {
  CLI::Option* const folder = app.add_option("--checkpoint-dir", o.checkpoint_dir,
                                             "a folder for checkpoints, from which --resume continues; made if it is not there")
                                  ->type_name("DIR")
                                  ->check(not_empty());
  app.add_option("--checkpoint-every", o.checkpoint_every, "steps between checkpoints; else one with each test")
      ->type_name("N")
      ->check(whole_number(INT64_MAX, 1))
      ->needs(folder);
  app.add_option("--keep", o.keep, "how many of the newest checkpoints are kept; 0: all")
      ->type_name("N")
      ->check(whole_number(INT_MAX))
      ->needs(folder)
      ->capture_default_str();
  app.add_flag("--resume", o.resume, "continues from the newest checkpoint of --checkpoint-dir, or begins where there is none")
      ->needs(folder);
  CLI::Option* const best =
      app.add_option("--best", o.best,
                     "what the test net makes that decides which test is the best; its variables are what is kept at the end")
          ->type_name("NAME=min|max")
          ->check(not_empty());
  app.add_option("--patience", o.patience, "ends the training after that many tests in a row that are no better than the best")
      ->type_name("N")
      ->check(whole_number(INT_MAX, 1))
      ->needs(best);
}

Run declare_train(CLI::App& app) {
  auto o = std::make_shared<TrainArguments>();
  app.add_option("net", o->file, "a file with a net that has a loss, and perhaps one to test it")->required()->type_name("NET");
  app.add_option("--net", o->net, "which net of the file learns: the only one, or \"train\"")->type_name("NAME");
  app.add_option("--test", o->test, "the net that it is tested with; else \"test\", where the file has it")->type_name("NAME");
  app.add_option("--init", o->init, "a net that is run once before the first step: it gives variables their content")->type_name("NAME");
  app.add_option("--loss", o->loss, "the value that is to become small")->type_name("NAME")->capture_default_str();
  app.add_option("--steps", o->steps, "how often the variables are updated")->type_name("N")->check(whole_number(INT64_MAX, 1));
  app.add_option("--epochs", o->epochs, "how often each sample is used; with --steps, what comes first")
      ->type_name("N")
      ->check(whole_number(INT64_MAX, 1));
  app.add_option("--batch", o->batch, "samples of a step: the symbol N; else as many as the net declares, else 32")
      ->check(whole_number(INT64_MAX, 1));
  app.add_option("--last-batch", o->last_batch,
                 "the samples at the end of an epoch that are fewer than a batch: left out, a batch, or filled up")
      ->check(CLI::IsMember({"drop", "keep", "pad"}))
      ->capture_default_str();
  app.add_option("--weights", o->weights, "an input that gets the weight of each sample: 0 for what --last-batch pad fills up with, else 1")
      ->type_name("NAME")
      ->check(not_empty());
  o->samples.declare(app);
  app.add_option("--metric", o->metrics,
                 "what tests have beside the numbers of the test net: accuracy:LOGITS,LABELS, top5:LOGITS,LABELS, perplexity:LOSS")
      ->type_name("METRIC")
      ->check(not_empty());
  CLI::Option* const every = app.add_option("--eval-every", o->eval_every, "steps between tests; else ten times")
                                 ->type_name("N")
                                 ->check(whole_number(INT64_MAX, 1));
  app.add_option("--eval-epochs", o->eval_epochs, "epochs between tests")
      ->type_name("N")
      ->check(whole_number(INT64_MAX, 1))
      ->excludes(every);
  app.add_option("--seed", o->seed, "of the order of samples, random operators and first contents")->check(whole_number());
  app.add_option("--log", o->log, "a line for each step, of JSON, or of a table in a file that ends in .csv")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("--curve", o->curve, "the losses, means of tests, rates and norms as a picture; -: as characters")
      ->type_name("FILE.svg|-")
      ->check(not_empty());
  CLI::Option* const output =
      app.add_option("-o,--output", o->output, "the file with what was learned")->type_name("NET.heddle")->check(not_empty());
  app.add_flag("--no-output", o->no_output, "keep nothing of what is learned, without a warning")->excludes(output);
  o->training.declare(app);
  o->limits.declare(app);
  o->commit.declare(app);
  o->memory_limit.declare(app);
  declare_checkpoints(app, *o);
  o->ranks.declare(app);
  app.add_flag("--verbose", o->verbose,
               "processes other than rank 0, which are silent otherwise, say when they begin and end, and which samples they leave out");
  // Not in the help: they say that they do not work yet.
  const auto later = [&](const char* name, std::string& value) { app.add_option(name, value)->group(""); };
  later("--accumulate", o->accumulate);
  later("--precision", o->precision);
  return [o](Report& report) { return report.finish_with(train(*o, report)); };
}

}  // namespace

const Command train_command = {
    "train",
    "a net learns from data",
    "heddle train learning.heddle --steps 1000 --data image=images.npy --data labels=labels.npy -o trained.heddle",
    declare_train,
    {{"train", {"train"}}}};

}  // namespace heddle::tool
