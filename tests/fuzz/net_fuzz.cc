// The fuzzer that any compiler builds: cases are mutations of the seeds, each a function of the seed and its number alone.
//
//   heddle_net_fuzz [--seed S] [--cases N] [--seconds T] [--only CASE] [--run] [--keep FILE] [--file FILE]
//
// Build it with the preset "asan". The case under way is in --keep (default net_fuzz.case) when the process dies; `--only` and `--file`
// repeat one case. A case that takes more than a second of processor time is a finding. Ends with 0 when there was none.
#include <fcntl.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <string>

#include "fuzz/material.h"
#include "fuzz/net_case.h"

// AddressSanitizer's: no case may ask for more than the limits allow, and then some.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=512:detect_leaks=1:detect_stack_use_after_return=0";
}

namespace {

using namespace heddle;
using namespace heddle::fuzz;

struct Options {
  uint64_t seed = 1;
  size_t cases = SIZE_MAX;
  double seconds = 60;
  size_t only = SIZE_MAX;
  bool run = false;
  std::string keep = "net_fuzz.case";
  std::string file;
};

bool parse(int count, char** words, Options& o) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--run") {
      o.run = true;
      continue;
    }
    if (i + 1 >= count) return false;
    const char* value = words[++i];
    if (word == "--seed") {
      o.seed = std::strtoull(value, nullptr, 10);
    } else if (word == "--cases") {
      o.cases = std::strtoull(value, nullptr, 10);
    } else if (word == "--seconds") {
      o.seconds = std::strtod(value, nullptr);
    } else if (word == "--only") {
      o.only = std::strtoull(value, nullptr, 10);
    } else if (word == "--keep") {
      o.keep = value;
    } else if (word == "--file") {
      o.file = value;
    } else {
      return false;
    }
  }
  return true;
}

double clock_seconds(clockid_t which) {
  timespec t{};
  clock_gettime(which, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void hangs(int) {
  static const char text[] = "a case has taken 10 s of processor time\n";
  if (write(2, text, sizeof(text) - 1) < 0) std::abort();
  std::abort();
}

// A case that never ends is stopped after 10 s of processor time.
void watch(bool on) {
  itimerval timer{};
  timer.it_value.tv_sec = on ? 10 : 0;
  setitimer(ITIMER_PROF, &timer, nullptr);
}

class Campaign {
 public:
  explicit Campaign(const Options& options) : options_(options), registry_(cpu_registry()), target_(registry_, options.run) {
    std::signal(SIGPROF, hangs);
    if (!options.keep.empty()) keep_ = open(options.keep.c_str(), O_RDWR | O_CREAT, 0644);
  }

  int repeat_file() {
    std::ifstream in(options_.file, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const auto* first = reinterpret_cast<const std::byte*>(text.data());
    run_case(Bytes(first, first + text.size()), 0);
    return finish(1);
  }

  int run() {
    const Material material = make_material(*registry_);
    const double begin = clock_seconds(CLOCK_MONOTONIC);
    size_t number = options_.only == SIZE_MAX ? 0 : options_.only;
    size_t done = 0;
    for (; done < options_.cases && clock_seconds(CLOCK_MONOTONIC) - begin < options_.seconds; ++number) {
      Dice dice(options_.seed * 0x9E3779B97F4A7C15 + number);
      run_case(make_case(material, dice), number);
      ++done;
      if (options_.only != SIZE_MAX) break;
    }
    std::printf("%zu seeds, %zu operators; seed %llu\n", material.seeds.size(), material.operators.size(),
                static_cast<unsigned long long>(options_.seed));
    const int status = finish(done);
    // Cases that all stop early test little.
    if (done < 500 || stopped_[Stage::done] * 20 > done) return status;
    std::fprintf(stderr, "fewer than one case in twenty came through: the mutators have lost their way\n");
    return 1;
  }

 private:
  void run_case(const Bytes& file, size_t number) {
    keep(file);
    const double begin = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    watch(true);
    const Outcome outcome = target_.test(file);
    watch(false);
    const double took = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
    ++stopped_[outcome.stopped];
    ++codes_[outcome.status.code()];
    slowest_ = std::max(slowest_, took);
    if (took > 1) {
      ++slow_;
      std::fprintf(stderr, "case %zu took %.2f s (stopped at %s: %s)\n", number, took, to_string(outcome.stopped),
                   outcome.status.text().c_str());
    }
    if (options_.only != SIZE_MAX || !options_.file.empty())
      std::printf("stopped at %s: %s\n", to_string(outcome.stopped), outcome.status.text().c_str());
  }

  // Written over, never emptied: some file systems sync a file that is replaced.
  void keep(const Bytes& file) const {
    if (keep_ < 0) return;
    const auto size = static_cast<ssize_t>(file.size());
    if (pwrite(keep_, file.data(), file.size(), 0) != size || ftruncate(keep_, size) != 0) std::perror(options_.keep.c_str());
  }

  int finish(size_t done) const {
    std::printf("%zu cases, stopped at", done);
    for (const auto& [stage, count] : stopped_) std::printf(" %s %zu,", to_string(stage), count);
    std::printf(" slowest %.3f s, %zu over 1 s\n", slowest_, slow_);
    for (const auto& [code, count] : codes_) std::printf("  %s %zu\n", heddle::to_string(code), count);
    return slow_ == 0 ? 0 : 1;
  }

  Options options_;
  std::shared_ptr<const RegistrySnapshot> registry_;
  Target target_;
  std::map<Stage, size_t> stopped_;
  std::map<Code, size_t> codes_;
  int keep_ = -1;
  double slowest_ = 0;
  size_t slow_ = 0;
};

}  // namespace

int main(int count, char** words) {
  Options options;
  if (!parse(count, words, options)) {
    std::fprintf(stderr, "heddle_net_fuzz [--seed S] [--cases N] [--seconds T] [--only CASE] [--run] [--keep FILE] [--file FILE]\n");
    return 2;
  }
  Campaign campaign(options);
  return options.file.empty() ? campaign.run() : campaign.repeat_file();
}
