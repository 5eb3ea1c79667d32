// Evaluations of a Trainer: its test net, and the means over all samples.
#include <fmt/format.h>

#include <algorithm>

#include "base/element.h"
#include "base/exceptions.h"
#include "base/text/text.h"
#include "train/trainer_state.h"

namespace heddle {

Status Trainer::State::evaluate(Evaluation* of) {
  if (!tester) return {Code::invalid_argument, "there is no net to test with", "call test_with() first"};
  HEDDLE_CHECK(join());
  of->step = made;
  of->samples = tester->data().samples();
  metrics.begin();
  for (int64_t first = 0; first < of->samples; first += options.batch) HEDDLE_CHECK(evaluate_batch(first, of));
  auto bad = static_cast<int64_t>(bad_of_test.size());
  HEDDLE_CHECK(sum_over_ranks(of, &bad));
  leave_out_bad(of, bad);
  metrics.add_to(&of->means);
  evaluation_due = false;
  ++evaluations;
  if (has_folder() && writer.newest() == made && evaluated.step != made) {  // its checkpoint lacks this evaluation
    writer.set_newest(-1);
    saving_due = true;
  }
  evaluated = *of;
  HEDDLE_CHECK(note_best(*of));
  // The best is saved whatever the caller makes of it, but after the caller was told.
  Status told = options.on_evaluation ? options.on_evaluation(*of) : Status();
  if (best_due) HEDDLE_CHECK(save_checkpoint());
  return told;
}

Status Trainer::State::evaluate_batch(int64_t first, Evaluation* of) {
  // Numbers go on from evaluation to evaluation, so that what is read ahead is the beginning of the next one.
  const int64_t batches = (of->samples + options.batch - 1) / options.batch, number = evaluations * batches + first / options.batch;
  HEDDLE_TRY(const SampleBatch* const read, test_reader->take(number, [this] { return cancellation.take(); }),
             "while the samples of a test were read");
  if (!read->bad.empty()) HEDDLE_CHECK(take_bad(*read, *tester, bad_of_test, "while the samples of a test were read"));
  if (read->samples.empty()) return {};  // other ranks have those of the last batch
  HEDDLE_CHECK(tester->feed(*read));
  HEDDLE_TRY(Context* const context, tester->prepare(memory), "while testing");
  RunOptions run;
  run.seed = options.seed;
  Status status = cancellation.run(*context, run);
  if (status.code() == Code::cancelled) return status;
  if (!status.ok()) return tester->with_samples(std::move(status), "while testing");
  // A net without weights counts the samples that take the place of bad ones.
  const int64_t count = tester->has_weights() ? tester->samples() : tester->batch();
  const std::vector<PortInfo>& outputs = tester->outputs();
  size_t at = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorView view = context->output(i);
    if (view.shape.rank() != 0 || !view.data) continue;
    if (first == 0) of->means.emplace_back(outputs[i].name, 0);
    of->means[at++].second += element(view, 0) * static_cast<double>(count) / static_cast<double>(of->samples);
  }
  return metrics.take(*tester, *context).during("while testing");
}

// Prepares a test net for its first samples. Returns null if all of these are bad, which the evaluation says.
Result<Context*> Trainer::State::prepare_test(FedNet& net, BatchReader& of) {
  HEDDLE_TRY(const SampleBatch* const first, of.take(0, [] { return Status(); }), "while the first samples of a test were read");
  if (first->samples.empty()) return static_cast<Context*>(nullptr);
  HEDDLE_CHECK(net.feed(*first));
  HEDDLE_TRY(Context* const context, net.prepare(memory), "while the test net was prepared");
  return context;
}

Status Trainer::test_with(const Session& net, std::shared_ptr<const Dataset> data) try {
  HEDDLE_TRY(FedNet tester, FedNet::create(net, std::move(data), state_->options.weights));
  if (tester.data().samples() == 0) return {Code::invalid_argument, "there are no samples to test with", "give some"};
  const TrainerOptions& options = state_->options;
  BatchSequence::Options order;
  order.samples = tester.data().samples();
  order.batch = options.batch;
  // A net without weights would count what pads.
  order.last_batch = options.last_batch == LastBatch::pad && tester.has_weights() ? LastBatch::pad : LastBatch::keep;
  order.shuffle = false;
  order.seed = options.seed;
  order.tests = true;
  if (const RankExchange* const ranks = state_->ranks.get()) {
    if (order.samples < ranks->ranks())
      return {Code::invalid_argument, fmt::format("there are {} samples to test with, and {} ranks", order.samples, ranks->ranks()),
              "give more"};
    order.rank = ranks->rank();
    order.ranks = ranks->ranks();
  }
  Metrics metrics = state_->metrics;
  HEDDLE_CHECK(metrics.find(tester));
  if (const std::string& mean = options.best.mean; !mean.empty() && !tester.output(mean) && !metrics.has(mean))
    return {Code::unknown_name, fmt::format("net {} has no output {}", quoted(net.name()), quoted(mean)),
            "name one of its outputs without axes, or a metric"};
  auto reader = std::make_unique<BatchReader>(tester.shared_data(), BatchSequence(order), options.reader_threads, options.read_ahead, -1,
                                              options.max_bad_samples);
  if (!metrics.empty()) {  // the first evaluation may be hours away
    HEDDLE_TRY(Context* const context, state_->prepare_test(tester, *reader));
    if (context) HEDDLE_CHECK(metrics.check(tester, *context));
  }
  state_->joined = false;  // ranks compare what they test with
  state_->tester.emplace(std::move(tester));
  state_->test_reader = std::move(reader);
  state_->bad_of_test.clear();
  state_->metrics = std::move(metrics);
  return {};
} catch (...) {
  return status_of_exception();
}

Result<std::vector<std::string>> Trainer::test_means() try {
  std::vector<std::string> names;
  if (!state_->tester) return names;
  HEDDLE_TRY(Context* const context, state_->prepare_test(*state_->tester, *state_->test_reader));
  if (!context) return Status(Code::invalid_argument, "none of the first samples to test with can be read", "mend them");
  const std::shared_ptr<const PlanInfo> plan = context->plan();
  if (!plan) return Status(Code::out_of_memory, "no memory to describe the plan of the test net");
  for (const size_t output : plan->outputs)
    if (plan->values[output].shape.rank() == 0) names.push_back(plan->values[output].name);
  state_->metrics.add_names(&names);
  return names;
} catch (...) {
  return status_of_exception();
}

}  // namespace heddle
