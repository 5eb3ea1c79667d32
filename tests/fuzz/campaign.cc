#include "fuzz/campaign.h"

#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>

// AddressSanitizer calls this. The allocation limit is above what the limits of a case allow: no case may request more.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=512:detect_leaks=1:detect_stack_use_after_return=0";
}

namespace heddle::fuzz {
namespace {

constexpr double wall_limit_s = 120;  // a case that sleeps for ever takes no processor time

double clock_seconds(clockid_t which) {
  timespec t{};
  clock_gettime(which, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void hangs(int) {
  static const char text[] = "a case has taken five times its limit of processor time\n";
  if (write(2, text, sizeof(text) - 1) < 0) std::abort();
  std::abort();
}

void sleeps(int) {
  static const char text[] = "a case has not come back for two minutes\n";
  if (write(2, text, sizeof(text) - 1) < 0) std::abort();
  std::abort();
}

void watch(double processor_s) {
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<time_t>(processor_s);
  setitimer(ITIMER_PROF, &timer, nullptr);
  timer.it_value.tv_sec = processor_s > 0 ? static_cast<time_t>(wall_limit_s) : 0;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

}  // namespace

bool parse_options(int count, char** words, const char* keep, CampaignOptions* options) {
  options->keep = keep;
  bool fine = true;
  for (int i = 1; i < count && fine; ++i) {
    const std::string word = words[i];
    if (word == "--run") {
      options->run = true;
      continue;
    }
    const char* value = i + 1 < count ? words[++i] : nullptr;
    fine = value != nullptr;
    if (!fine) break;
    if (word == "--seed") {
      options->seed = std::strtoull(value, nullptr, 10);
    } else if (word == "--cases") {
      options->cases = std::strtoull(value, nullptr, 10);
    } else if (word == "--seconds") {
      options->seconds = std::strtod(value, nullptr);
    } else if (word == "--only") {
      options->only = std::strtoull(value, nullptr, 10);
    } else if (word == "--keep") {
      options->keep = value;
    } else if (word == "--file") {
      options->file = value;
    } else {
      fine = false;
    }
  }
  if (!fine) std::fprintf(stderr, "%s [--seed S] [--cases N] [--seconds T] [--only CASE] [--run] [--keep FILE] [--file FILE]\n", words[0]);
  return fine;
}

Campaign::Campaign(const CampaignOptions& options, double limit_s) : options_(options), limit_s_(limit_s) {
  std::signal(SIGPROF, hangs);
  std::signal(SIGALRM, sleeps);
  if (options.keep.empty()) return;
  keep_ = open(options.keep.c_str(), O_RDWR | O_CREAT, 0644);
  number_ = open((options.keep + ".txt").c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
}

Campaign::~Campaign() {
  if (keep_ >= 0) close(keep_);
  if (number_ >= 0) close(number_);
}

// The file is overwritten, never truncated first: some file systems sync a file that is replaced.
void Campaign::keep(std::span<const std::byte> bytes) const {
  if (keep_ < 0) return;
  const auto size = static_cast<ssize_t>(bytes.size());
  if (pwrite(keep_, bytes.data(), bytes.size(), 0) != size || ftruncate(keep_, size) != 0) std::perror(options_.keep.c_str());
}

int Campaign::run(const std::function<Ending(size_t)>& one_case, size_t min_through) {
  const double begin = clock_seconds(CLOCK_MONOTONIC);
  size_t number = options_.only == SIZE_MAX ? 0 : options_.only, done = 0;
  for (; done < options_.cases && clock_seconds(CLOCK_MONOTONIC) - begin < options_.seconds; ++number) {
    measure(number, [&] { return one_case(number); });
    ++done;
    if (options_.only != SIZE_MAX) break;
  }
  std::printf("seed %llu, %.0f s\n", static_cast<unsigned long long>(options_.seed), clock_seconds(CLOCK_MONOTONIC) - begin);
  const int status = finish(done);
  if (done < 500 || through_ * 1000 > done * min_through) return status;
  std::fprintf(stderr, "fewer than %zu cases in a thousand came through: the mutators have lost their way\n", min_through);
  return 1;
}

int Campaign::run_file(const std::function<Ending(const std::vector<std::byte>&)>& one_case) {
  std::ifstream in(options_.file, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  const std::vector<std::byte> bytes(first, first + text.size());
  measure(0, [&] { return one_case(bytes); });
  return finish(1);
}

void Campaign::measure(size_t number, const std::function<Ending()>& one_case) {
  char text[64];
  const int length =
      std::snprintf(text, sizeof(text), "--seed %llu --only %-12zu\n", static_cast<unsigned long long>(options_.seed), number);
  if (number_ >= 0 && pwrite(number_, text, static_cast<size_t>(length), 0) != length) std::perror(options_.keep.c_str());
  const double begin = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  watch(5 * limit_s_);
  const Ending ending = one_case();
  watch(0);
  const double took = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
  const std::string why = ending.status.text();
  ++stages_[ending.stage.empty() ? "nowhere" : ending.stage];
  through_ += ending.stage.empty();
  ++codes_[ending.status.code()];
  slowest_ = std::max(slowest_, took);
  if (took > limit_s_) {
    ++slow_;
    std::fprintf(stderr, "case %zu took %.2f s (stopped at %s: %s)\n", number, took, ending.stage.c_str(), why.c_str());
  }
  if (ending.status.code() == Code::internal || (!ending.status.ok() && ending.status.diagnostic().message.empty())) {
    ++broken_;
    std::fprintf(stderr, "case %zu: at %s an error that is a defect: %s\n", number, ending.stage.c_str(), why.c_str());
  }
  if (options_.only != SIZE_MAX || !options_.file.empty())
    std::printf("stopped at %s: %s\n", ending.stage.empty() ? "nowhere" : ending.stage.c_str(), why.c_str());
}

int Campaign::finish(size_t done) const {
  std::printf("%zu cases, stopped at", done);
  for (const auto& [stage, count] : stages_) std::printf(" %s %zu,", stage.c_str(), count);
  std::printf(" slowest %.3f s, %zu over %.0f s, %zu errors that are defects\n", slowest_, slow_, limit_s_, broken_);
  for (const auto& [code, count] : codes_) std::printf("  %s %zu\n", heddle::to_string(code), count);
  return slow_ + broken_ == 0 ? 0 : 1;
}

}  // namespace heddle::fuzz
