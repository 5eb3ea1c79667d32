// A Trainer as one of several ranks: each has its part of every batch, and rank 0 alone writes files. Before the first step all ranks
// become what rank 0 is.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "base/text/text.h"
#include "device/collective_comparison.h"
#include "net/print.h"
#include "session/plain_values.h"
#include "session/session_impl.h"
#include "state/checkpoint_file.h"
#include "train/trainer_state.h"

namespace heddle {
namespace {

constexpr const char* net_word = "net";

// One text for pairs of texts, which may have any bytes, and back. What follows them is left in `text`.
std::string packed(const TextPairs& pairs) {
  std::string text = fmt::format("{};", pairs.size());
  for (const auto& [name, value] : pairs)
    for (const std::string& part : {name, value}) text += fmt::format("{};{}", part.size(), part);
  return text;
}
bool unpack_number(std::string_view& text, int64_t* number) {
  const size_t at = text.find(';');
  if (at == std::string_view::npos || !parse_int(text.substr(0, at), number) || *number < 0) return false;
  text.remove_prefix(at + 1);
  return true;
}
bool unpack(std::string_view& text, TextPairs* pairs) {
  int64_t count = 0, length = 0;
  if (!unpack_number(text, &count)) return false;
  for (int64_t i = 0; i < count; ++i) {
    auto& [name, value] = pairs->emplace_back();
    for (std::string* const part : {&name, &value}) {
      if (!unpack_number(text, &length) || static_cast<size_t>(length) > text.size()) return false;
      part->assign(text.substr(0, static_cast<size_t>(length)));
      text.remove_prefix(static_cast<size_t>(length));
    }
  }
  return true;
}

std::string checksum_of(std::string_view text) {
  return hex(checksum(std::as_bytes(std::span(text.data(), text.size()))));
}

std::string checksum_of_variables(const VariableStore& store) {
  std::string text;
  for (size_t i = 0; i < store.size(); ++i)
    text += fmt::format("{} {} {}\n", quoted(store.name(i)), to_string(store.dtype(i)), store.shape(i).text());
  return checksum_of(text);
}

// Returns a checksum of a few samples; empty: one of them can not be read. Datasets need not say what their samples are.
std::string checksum_of_samples(const Dataset& data) {
  const int64_t last = data.samples() - 1, some[] = {0, last / 3, last / 2, last};
  Batch batch;
  std::string text;
  for (const int64_t& sample : some) {
    if (!data.read({&sample, 1, 0, 0, -1}, batch).ok()) return {};
    for (const TensorView& value : batch.values())
      text += value.data ? hex(checksum({static_cast<const std::byte*>(value.data), static_cast<size_t>(value.byte_size())})) : "-";
  }
  return checksum_of(text);
}

}  // namespace

// Checks that batches can be divided: rows of tables are gathered from all participants, which have equally many.
Status Trainer::State::check_parts() const {
  if (!ranks) return {};
  if (options.batch < ranks->ranks())
    return {Code::invalid_argument, fmt::format("a batch has {} samples, and there are {} ranks", options.batch, ranks->ranks()),
            "give each rank one sample at least"};
  const int64_t rest = options.last_batch == LastBatch::keep ? learner.data().samples() % options.batch : 0;
  if (rest > 0 && rest < ranks->ranks())
    return {Code::invalid_argument, fmt::format("the last batch has {} samples, and there are {} ranks", rest, ranks->ranks()),
            "leave it out (LastBatch::drop), or fill it up (LastBatch::pad)"};
  for (const Node& node : Internals::of(learner.session()).net.nodes) {
    if (node.domain != "heddle" || node.type != "AllGather") continue;
    const int64_t parts = node.int_attribute("size", 1);
    for (const int64_t samples : {options.batch, rest})
      if (samples % parts != 0)
        return {Code::invalid_argument,
                fmt::format("operator {} gathers rows of {} equal parts of a batch, and there is one of {} samples", quoted(node.name),
                            parts, samples),
                fmt::format("let {} divide the number of samples, and leave out a last batch that is smaller (LastBatch::drop)", parts)};
  }
  return {};
}

// Returns all that has to be alike on the ranks, by the words for it.
TextPairs Trainer::State::likeness() const {
  const CheckpointInfo info = checkpoint_info();
  const Session::Impl& session = Internals::of(learner.session());
  TextPairs pairs = {{"version of Heddle", info.version},
                     {"seed", fmt::to_string(info.seed)},  // of synthetic samples too
                     {"number of samples", fmt::to_string(info.samples)},
                     {"identity of samples", info.data},
                     {"checksum of samples", checksum_of_samples(learner.data())},
                     {"batch", fmt::to_string(info.batch)},
                     {"last batch", std::string(to_string(info.last_batch))},
                     {"shuffling", info.shuffles ? "yes" : "no"},
                     {"input of weights", options.weights},
                     {"loss", options.loss},
                     {net_word, info.net},
                     {"list of variables", checksum_of_variables(*session.variables)},
                     {"number of steps", fmt::to_string(total_steps())},
                     {"number of steps between tests", fmt::to_string(options.evaluate_every)},
                     {"rule for the best test", fmt::format("{}, {}", info.best, options.best.patience)},
                     {"list of metrics", fmt::format("{}", fmt::join(options.metrics, " "))},
                     {"test", tester ? "yes" : "none"}};
  if (!tester) return pairs;
  pairs.emplace_back("number of test samples", fmt::to_string(tester->data().samples()));
  pairs.emplace_back("identity of test samples", tester->data().identity());
  pairs.emplace_back("checksum of test samples", checksum_of_samples(tester->data()));
  return pairs;
}

// Makes this rank what rank 0 is: the step, what is known of tests, and the variables. All ranks fail where one of them is unlike rank 0.
Status Trainer::State::join() {
  if (!ranks || joined) return {};
  TextPairs progress;
  if (ranks->is_first()) {
    progress = texts_of(checkpoint_info());
    progress.emplace_back("judged_step", fmt::to_string(judged_step));
    progress.emplace_back("evaluation_due", evaluation_due ? "1" : "0");
  }
  const std::string mine = packed(likeness()) + packed(progress);
  HEDDLE_TRY(const std::vector<std::string> all, ranks->texts(mine, cancellation), "while the ranks told each other what they train");
  std::vector<TextPairs> of_ranks(all.size());
  std::string_view rest;
  for (size_t rank = all.size(); rank-- > 0;) {
    rest = all[rank];
    if (!unpack(rest, &of_ranks[rank])) return {Code::device_failed, fmt::format("rank {} tells what this version can't read", rank)};
  }
  for (size_t rank = 1; rank < all.size(); ++rank) {
    Status unlike = check_alike(of_ranks[0], of_ranks[rank], rank);
    if (!unlike.ok()) return add_net_difference(std::move(unlike), of_ranks, rank);
  }
  if (!ranks->is_first()) HEDDLE_CHECK(take_progress(rest));
  HEDDLE_CHECK(take_variables(), "while the ranks got the variables of rank 0");
  joined = true;
  return {};
}

Status Trainer::State::check_alike(const TextPairs& first, const TextPairs& other, size_t rank) {
  for (size_t i = 0; i < std::min(first.size(), other.size()); ++i) {
    if (first[i] == other[i] || (first[i].first == other[i].first && (first[i].second.empty() || other[i].second.empty()))) continue;
    return {Code::invalid_argument,
            fmt::format("rank {} has another {} than rank 0: {} and {}", rank, other[i].first, quoted(other[i].second),
                        quoted(first[i].second)),
            "start all ranks with the same Heddle, net, data and options"};
  }
  return {};
}

// Where it is the nets that differ, all ranks see so, and tell each other theirs.
Status Trainer::State::add_net_difference(Status unlike, const std::vector<TextPairs>& of_ranks, size_t rank) {
  const auto net_of = [](const TextPairs& pairs) {
    const auto found = std::find_if(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.first == net_word; });
    return found == pairs.end() ? std::string() : found->second;
  };
  if (net_of(of_ranks[0]) == net_of(of_ranks[rank])) return unlike;
  HEDDLE_TRY(const std::vector<std::string> nets, ranks->texts(print(Internals::of(learner.session()).net), cancellation));
  unlike.diagnostic().message += fmt::format(": {}", net_difference(fmt::format("rank {}", rank), nets[rank], "rank 0", nets[0]));
  return unlike;
}

Status Trainer::State::take_progress(std::string_view text) {
  TextPairs pairs;
  const auto number = [&](const char* name) {
    int64_t value = -1;
    for (const auto& [key, of] : pairs)
      if (key == name) parse_int(of, &value);
    return value;
  };
  if (!unpack(text, &pairs)) return {Code::device_failed, "rank 0 tells what this version can't read"};
  HEDDLE_TRY(const CheckpointInfo of, checkpoint_info_of(pairs, "of rank 0"));
  made = of.step;
  last_loss = of.loss;
  evaluated = {};
  if (!of.means.empty()) evaluated = {made, 0, of.means};
  best_step = of.best_step;
  best_mean = of.best_mean;
  since_best = of.evaluations_since_best;
  judged_step = number("judged_step");
  evaluation_due = number("evaluation_due") == 1;
  return {};
}

// Copies all variables of rank 0 at once: a run sees the ones before or those of rank 0.
Status Trainer::State::take_variables() {
  VariableStore& store = *Internals::of(learner.session()).variables;
  HEDDLE_CHECK(store.fill());
  std::vector<std::shared_ptr<const Blob>> contents(store.size());
  if (ranks->is_first()) {
    HEDDLE_TRY(contents, store.snapshot());
  }
  std::vector<std::span<std::byte>> parts;
  size_t bytes = 0;
  for (size_t i = 0; i < store.size(); ++i) {
    if (store.is_replica(i)) continue;
    std::byte* data = nullptr;
    if (ranks->is_first())
      data = const_cast<std::byte*>(contents[i]->data);  // what rank 0 gets is what it has
    else
      contents[i] = Blob::allocate(store.dtype(i), store.shape(i), &data);
    parts.emplace_back(data, static_cast<size_t>(contents[i]->bytes));
    bytes += parts.back().size();
  }
  // Few large collectives: nets have hundreds of small variables.
  constexpr size_t bucket_bytes = 4 << 20;
  std::vector<std::byte> bucket;
  bucket.reserve(std::min(bytes, bucket_bytes));
  for (size_t i = 0; i < parts.size();) {
    size_t end = i, size = 0;
    while (end < parts.size() && (end == i || size + parts[end].size() <= bucket_bytes)) size += parts[end++].size();
    if (end == i + 1) {
      HEDDLE_CHECK(ranks->copy_first(parts[i], cancellation));
    } else {
      bucket.resize(size);
      for (size_t k = i, at = 0; k < end; at += parts[k++].size())
        std::copy(parts[k].begin(), parts[k].end(), bucket.begin() + static_cast<std::ptrdiff_t>(at));
      HEDDLE_CHECK(ranks->copy_first(bucket, cancellation));
      for (size_t k = i, at = 0; k < end; at += parts[k++].size()) std::memcpy(parts[k].data(), bucket.data() + at, parts[k].size());
    }
    i = end;
  }
  return ranks->is_first() ? Status() : store.replace(contents);
}

// Waits before the first step until all ranks have what they need for it. They meet once more in it, where one that never comes can not say
// why.
Status Trainer::State::await_ranks() {
  if (!ranks || in_step) return {};
  HEDDLE_CHECK(wait_for_ranks(), "while the ranks waited until all had the samples of their first step");
  in_step = true;
  return {};
}

Status Trainer::State::wait_for_ranks() {
  double one = 1;
  return ranks ? ranks->sum({&one, 1}, cancellation) : Status();
}

// Makes the sums of an evaluation, of which each rank has those of its samples, the sums over all. `bad`: samples that were left out.
Status Trainer::State::sum_over_ranks(Evaluation* of, int64_t* bad) {
  if (!ranks) return {};
  std::vector<double> sums = {static_cast<double>(*bad)};
  for (const auto& [name, value] : of->means) sums.push_back(value);
  metrics.add_sums(&sums);
  HEDDLE_CHECK(ranks->sum(sums, cancellation), "while the means of a test were computed from those of all ranks");
  size_t at = 0;
  *bad = static_cast<int64_t>(sums[at++]);
  for (auto& [name, value] : of->means) value = sums[at++];
  metrics.take_sums(std::span(sums).subspan(at));
  return {};
}

Status Trainer::State::ended(Status status) noexcept {
  if (status.ok() || !ranks) return status;
  joined = in_step = false;
  const std::string why = or_empty("no memory for what other ranks are told",
                                   [&] { return fmt::format("its training has ended: {}", status.diagnostic().message); });
  Internals::of(learner.session()).communicators->leave(why);
  ranks->leave(why);
  return status;
}

}  // namespace heddle
