#include "train/bad_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/option_names.h"
#include "train/sample_text.h"

namespace heddle {
namespace {

// Returns true if another sample might have been read where this error came: the file is at fault, and neither the machine nor the program.
bool is_fault_of_sample(Code code) {
  switch (code) {
    case Code::busy:
    case Code::out_of_memory:
    case Code::cancelled:
    case Code::deadline_exceeded:
    case Code::device_failed:
    case Code::device_lost:
    case Code::forked:
    case Code::interrupted:
    case Code::not_implemented:
    case Code::internal:
      return false;
    default:
      return true;
  }
}

Status request(const Dataset& data, SampleBatch& of) {
  return data.read({of.samples.data(), static_cast<int64_t>(of.samples.size()), of.padding, of.seed, of.epoch}, of.batch);
}

// Gives the batch the samples that were asked for, but the bad ones, and fills its places with the last of them.
void fill(SampleBatch& of, const std::vector<int64_t>& asked, size_t places) {
  of.samples.clear();
  auto bad = of.bad.begin();
  for (const int64_t sample : asked) {
    if (bad != of.bad.end() && bad->sample == sample)
      ++bad;
    else
      of.samples.push_back(sample);
  }
  of.padding = 0;
  if (of.samples.empty()) return;
  of.padding = static_cast<int64_t>(places - of.samples.size());
  of.samples.resize(places, of.samples.back());
}

// Adds how to go on without the sample, unless the hint is of another option.
Status with_hint(Status error) {
  Diagnostic& said = error.diagnostic();
  if (!said.option.empty()) return error;
  const std::string before = said.hint.empty() ? "mend it" : said.hint;
  Hint hint = hint_with(fmt::format("{}, or let it be left out with ", before), option_names::max_bad_samples);
  said.hint = std::move(hint.text);
  said.option = std::move(hint.option);
  return error;
}

Status named(const Dataset& data, int64_t sample, Status error) {
  return std::move(error).during(fmt::format("while sample {} was read", data.sample_name(sample)));
}

}  // namespace

Status BadSamples::read(const Dataset& data, SampleBatch& of) {
  const size_t places = of.samples.size();
  const std::span<const int64_t> wanted = std::span(of.samples).first(places - static_cast<size_t>(of.padding));
  of.bad = known(wanted);
  std::vector<int64_t> asked;  // only a batch that has bad samples needs a copy
  if (!of.bad.empty()) {
    asked.assign(wanted.begin(), wanted.end());
    fill(of, asked, places);
  }
  if (of.samples.empty()) return {};
  Status status = request(data, of);
  if (status.ok() || !is_fault_of_sample(status.code())) return status;
  const size_t met = of.bad.size();
  if (met == 0) asked.assign(wanted.begin(), wanted.end());
  HEDDLE_CHECK(search(data, asked, of));
  if (static_cast<int64_t>(of.bad.size()) > max_count_) {  // the training ends with the last of them
    of.samples.clear();
    of.padding = 0;
    return {};
  }
  if (of.bad.size() > met) {
    fill(of, asked, places);
    if (of.samples.empty()) return {};
    status = request(data, of);
    if (status.ok()) return {};
  }
  return std::move(status).during(fmt::format("while samples {} were read together", samples_text({data, of.samples, of.batch})));
}

// Reads each sample by itself, and makes of.bad those that can not be read. It ends when these are more than may be left out.
Status BadSamples::search(const Dataset& data, const std::vector<int64_t>& asked, SampleBatch& of) {
  const std::vector<BadSample> before = std::exchange(of.bad, {});
  auto met = before.begin();
  Batch alone;
  for (const int64_t sample : asked) {
    if (met != before.end() && met->sample == sample) {
      of.bad.push_back(*met++);
      continue;
    }
    Status status = data.read({&sample, 1, 0, of.seed, of.epoch}, alone);
    if (status.ok()) continue;
    if (!is_fault_of_sample(status.code())) return named(data, sample, std::move(status));
    if (max_count_ == 0) return named(data, sample, with_hint(std::move(status)));
    of.bad.push_back({sample, std::move(status)});
    remember(of.bad.back());
    if (static_cast<int64_t>(of.bad.size()) > max_count_) break;
  }
  return {};
}

// Returns those of the samples that are known to be bad, in the same order.
std::vector<BadSample> BadSamples::known(std::span<const int64_t> asked) const {
  std::vector<BadSample> found;
  const MutexLock lock(mutex_);
  if (known_.empty()) return found;
  for (const int64_t sample : asked)
    if (const auto at = known_.find(sample); at != known_.end()) found.push_back({sample, at->second});
  return found;
}

void BadSamples::remember(const BadSample& bad) {
  const MutexLock lock(mutex_);
  if (static_cast<int64_t>(known_.size()) < max_count_) known_.emplace(bad.sample, bad.error);
}

}  // namespace heddle
