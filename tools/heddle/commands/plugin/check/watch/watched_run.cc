#include "commands/plugin/check/watch/watched_run.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <utility>

#include "process/process_counts.h"

namespace heddle::tool {
namespace {

// The file that replaces standard output; -1: it is not watched.
int printed_to = -1;

bool take_printed() {
  if (printed_to < 0) return false;
  std::cout.flush();
  std::fflush(stdout);
  const bool any = ::lseek(printed_to, 0, SEEK_END) > 0;
  if (any && (::ftruncate(printed_to, 0) != 0 || ::lseek(printed_to, 0, SEEK_SET) != 0)) printed_to = -1;
  return any;
}

// The mapped pages of this process's address space.
int64_t mapped_pages() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages;
  return pages;
}

int64_t entries_of(const char* folder) {
  int64_t count = 0;
  std::error_code error;
  for (auto it = std::filesystem::directory_iterator(folder, error); !error && it != std::filesystem::directory_iterator();
       it.increment(error))
    ++count;
  return count;
}

bool computed_in_place(const OperatorCall& call, uint32_t input) {
  for (const auto& [output, of] : call.in_place)
    if (of == input) return true;
  return false;
}

// By the name of the mistake that it would be for other kernels.
std::map<std::string, std::string> of_asynchronous;

// One at a time: the counts are those of the process.
std::optional<Counting> counting;
ProcessCounts before;
int64_t waits_before = 0;

// How often the thread has yielded its processor because it had nothing to do.
int64_t waits_of_this_thread() {
  rusage usage = {};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

}  // namespace

WatchedRun::WatchedRun(const RegistrySnapshot& registry, OperatorCall call, GuardedBytes::Side side, uint8_t slack)
    : side_(side), slack_(slack), new_thread_(call.conditions.other_threads), outputs_(Status()) {
  for (uint32_t i = 0; i < call.inputs.size(); ++i) {
    if (!call.inputs[i]) continue;
    auto guarded = std::make_shared<Blob>(*call.inputs[i]);
    GuardedBytes& memory = memory_.emplace_back(fmt::format("input {}", i), guarded->bytes, side_, slack_);
    if (guarded->bytes > 0) std::memcpy(memory.data(), guarded->data, static_cast<size_t>(guarded->bytes));
    if (!computed_in_place(call, i)) memory.forbid_writing();
    guarded->data = memory.data();
    guarded->owner = nullptr;
    call.inputs[i] = std::move(guarded);
  }
  call.conditions.observer = this;
  take_printed();
  outputs_ = run_operator(registry, call, &end_);
  // A kernel that finds extents while it runs may keep memory that it grew for the next run of the same inputs.
  if (seen_.allocations > 0 && finds_extents_ && outputs_.ok()) {
    seen_.allocations = 0;
    const auto inputs = call.inputs;
    const bool grew = !std::exchange(call.conditions.inputs_before, &inputs);
    if (grew) outputs_ = run_operator(registry, call, &end_);
  }
  // The system may have made a thread wait for memory, once; a kernel that waits does so each time.
  for (int again = 0; again < 3 && seen_.waits > 0 && outputs_.ok(); ++again) {
    const Seen first = seen_;
    seen_.waits = 0;
    outputs_ = run_operator(registry, call, &end_);
    seen_ = {first.allocations, first.threads, seen_.waits, first.printed};
  }
  look();
}

std::byte* WatchedRun::allocate(Memory of, uint32_t index, int64_t bytes) {
  const std::string name = of == Memory::output           ? fmt::format("output {}", index)
                           : of == Memory::scratch        ? "its scratch"
                           : of == Memory::thread_scratch ? "a thread's scratch"
                                                          : "a constant that it has packed";
  finds_extents_ = finds_extents_ || (of == Memory::output && ran_);
  GuardedBytes& memory = memory_.emplace_back(name, bytes, side_, slack_);
  if (of == Memory::packed) packed_.push_back(&memory);
  return memory.data();
}

void WatchedRun::prepared(int64_t tiles, uint32_t kernel_flags) {
  tiles_ = tiles;
  asynchronous_ = (kernel_flags & HEDDLE_KERNEL_ASYNC) != 0;  // this code waits for its end
  for (GuardedBytes* memory : packed_) memory->forbid_writing();
}

void WatchedRun::run_begins() {
  ran_ = true;
  before = ProcessCounts::so_far();
  waits_before = waits_of_this_thread();
  counting.emplace();
}

void WatchedRun::run_ended() {
  counting.reset();
  seen_.waits += waits_of_this_thread() - waits_before;
  const ProcessCounts now = ProcessCounts::so_far();
  seen_.allocations += now.allocations - before.allocations;
  seen_.threads += now.threads - before.threads;
  seen_.printed = take_printed() || seen_.printed;
}

void WatchedRun::look() {
  for (const GuardedBytes& memory : memory_)
    if (std::string damage = memory.damage(); !damage.empty()) {
      found_ = {"write-beyond", fmt::format("the kernel {}", damage)};
      return;
    }
  if (seen_.printed) found_ = {"prints", "prints to standard output when it runs"};
  const auto found = [&](const char* mistake, const std::string& text) {
    if (asynchronous_)
      of_asynchronous[mistake] = text;
    else
      found_ = {mistake, text};
  };
  if (seen_.allocations > 0 && found_.ok() && !new_thread_)  // a new thread makes libraries allocate what they keep for each thread
    found("allocates", fmt::format("allocates memory when it runs ({} times in one run)", seen_.allocations));
  if (seen_.waits > 0 && found_.ok() && !asynchronous_) found_ = {"waits", "waits when it runs, for time to pass or for another thread"};
  if (seen_.threads > 0) found("starts-threads", fmt::format("starts threads when it runs ({} in one run)", seen_.threads));
}

std::vector<Note> notes_of_asynchronous() {
  std::vector<Note> notes;
  for (const auto& [name, text] : of_asynchronous) notes.push_back({name, text});
  return notes;
}

Finding find_leaks(const RegistrySnapshot& registry, const OperatorCall& call) {
  constexpr int times = 4;
  OperatorCall twice = call;  // prepared twice
  twice.conditions.inputs_before = &call.inputs;
  const auto run = [&] { static_cast<void>(run_operator(registry, twice)); };
  run();  // allocates what is made once for all calls
  run();
  const int64_t files = entries_of("/proc/self/fd"), threads = entries_of("/proc/self/task");
  const int64_t kept = ProcessCounts::so_far().kept;
  {
    const Counting here;
    for (int i = 0; i < times; ++i) run();
  }
  const int64_t left = ProcessCounts::so_far().kept - kept;
  if (left >= times) return {"leak", fmt::format("leaks memory: {} calls left {} allocations behind", times, left)};
  if (entries_of("/proc/self/fd") >= files + times) return {"leak", "leaks open files: each call leaves one behind"};
  if (entries_of("/proc/self/task") >= threads + times) return {"leak", "leaks threads: each call leaves one behind"};
  if (!ProcessCounts::available()) return {};  // a sanitizer's allocator maps more at each call
  // malloc maps more now and then, for other threads too; a leak does so call after call.
  int64_t pages = mapped_pages();
  for (int i = 0; i < 4 * times; ++i) {
    run();
    const int64_t now = mapped_pages();
    if (now <= std::exchange(pages, now)) return {};
  }
  return {"leak", "leaks address space: each call leaves a mapping behind"};
}

void watch_standard_output() {
  const int file = ::memfd_create("heddle-check", MFD_CLOEXEC);
  if (file < 0) return;
  std::cout.flush();
  std::fflush(stdout);
  if (::dup2(file, STDOUT_FILENO) >= 0) printed_to = file;
}

}  // namespace heddle::tool
