// One process of a job that mpirun starts: `heddle_pmix_rank CASE`. It prints what is wrong, and its exit status says whether anything is.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rendezvous/meeting.h"
#include "rendezvous/pmix_place.h"
#include "rendezvous/reports.h"

namespace {

using namespace heddle::rendezvous;

int mistakes = 0;
int32_t rank = -1, ranks = -1;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++mistakes;
  std::printf("rank %d: wrong: %s\n", rank, what.c_str());
}
void expect_ok(const Status& status, const std::string& what) {
  expect(status.ok(), what + ": " + status.text);
}
void expect_error(const Status& status, heddle_status code, const std::string& part) {
  expect(status.code == code && status.text.find(part) != std::string::npos, "not an error with '" + part + "': " + status.text);
}

const std::function<bool()> never;
Patience patience() {
  return {std::chrono::steady_clock::now() + std::chrono::seconds(60), never};
}

std::unique_ptr<Store> store(const std::string& communicator = "world") {
  std::unique_ptr<Store> made;
  expect_ok(make_store("pmix", communicator, rank, ranks, &made), "make_store");
  if (!made) std::exit(1);
  return made;
}

std::string get(Store& in, const Key& key) {
  std::string value = "-";
  bool found = false;
  expect_ok(in.get(key, &value, &found), "get " + key.name);
  return value;
}
bool set(Store& in, const Key& key, const std::string& value) {
  bool written = false;
  expect_ok(in.set(key, value, &written), "set " + key.name);
  return written;
}
std::string wait(Store& in, const Key& key) {
  std::string value;
  expect_ok(in.wait(key, &value, patience()), "wait " + key.name);
  return value;
}

void keys_are_written_once() {
  const auto world = store(), again = store(), other = store("other");
  const int32_t next = (rank + 1) % ranks;
  const std::string bytes("\0\n", 2), large(100000, 'x');
  expect(get(*world, {next, "never"}) == "-", "a key is there that no process wrote");
  expect(set(*world, {rank, "a"}, bytes), "the first value is not taken");
  expect(!set(*world, {rank, "a"}, "second") && !set(*again, {rank, "a"}, "third"), "a second value is taken");
  expect(wait(*world, {next, "a"}) == bytes, "not the first value");
  // A key that comes after others of that rank have been read is seen.
  expect(set(*world, {rank, "b"}, large) && wait(*world, {next, "b"}) == large, "not the large value");
  expect(get(*other, {next, "a"}) != bytes, "a communicator has a key of another");
  expect(set(*other, {rank, "a"}, "") && wait(*other, {next, "a"}).empty(), "not the empty value");
  bool written = false;
  expect_error(world->set({next, "c"}, "x", &written), HEDDLE_ERROR_INVALID, "can not write");
  expect_error(world->set({rank, std::string(600, 'k')}, "x", &written), HEDDLE_ERROR_INVALID, "too long for PMIx");
  expect(world->where().find("pmix (job ") == 0, world->where());
  std::unique_ptr<Store> wrong;
  expect_error(make_store("pmix", "world", next, ranks, &wrong), HEDDLE_ERROR_INVALID, "of which this is rank " + std::to_string(rank));
  expect_error(make_store("pmix", "world", rank, ranks + 1, &wrong), HEDDLE_ERROR_INVALID,
               "started " + std::to_string(ranks) + " processes");
}

void one_of_many_threads_writes() {
  const auto world = store();
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> wrote{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] { wrote += set(*world, {rank, "round " + std::to_string(round)}, std::to_string(i)) ? 1 : 0; });
    for (std::thread& thread : threads) thread.join();
    expect(wrote == 1, std::to_string(wrote) + " threads wrote a key");
  }
}

void all_meet_and_report() {
  const auto world = store();
  Meeting meeting(world.get(), rank, ranks);
  std::string before;
  for (int call = 0; call < 3; ++call) {
    Joined joined;
    expect_ok(meeting.next("payload " + std::to_string(rank), patience(), &joined), "next");
    expect(joined.payloads.size() == static_cast<size_t>(ranks) && joined.payloads[1] == "payload 1", "not the payloads");
    expect(joined.attempt != before, "the same attempt");
    before = joined.attempt;
    expect_ok(report(*world, joined.attempt, rank, {static_cast<uint64_t>(rank), "all-reduce", "it is a test", {}, 0, ""}), "report");
    std::vector<std::optional<Report>> reports;
    for (int32_t other = 0; other < ranks; ++other) wait(*world, {other, "report/" + joined.attempt});
    expect_ok(read_reports(*world, joined.attempt, ranks, &reports), "read_reports");
    for (int32_t other = 0; other < ranks; ++other) {
      const auto& one = reports[static_cast<size_t>(other)];
      expect(one && one->number == static_cast<uint64_t>(other), "not the report of " + std::to_string(other));
    }
  }
}

// The others end as they would have ended, and do not wait for it.
void a_killed_rank_holds_no_other() {
  const auto world = store();
  set(*world, {rank, "here"}, "x");
  for (int32_t other = 0; other < ranks; ++other) wait(*world, {other, "here"});
  if (rank == 1) ::raise(SIGKILL);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  expect(get(*world, {1, "here"}) == "x", "the key of a killed rank is gone");
}

void signals_are_left_alone() {
  struct sigaction before[32], after[32];
  for (int i = 1; i < 32; ++i) ::sigaction(i, nullptr, &before[i]);
  expect_ok(pmix_place(&rank, &ranks), "pmix_place");
  for (int i = 1; i < 32; ++i) {
    ::sigaction(i, nullptr, &after[i]);
    expect(before[i].sa_handler == after[i].sa_handler, "PMIx handles signal " + std::to_string(i));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> cases = {{"keys", keys_are_written_once},
                                                   {"threads", one_of_many_threads_writes},
                                                   {"meeting", all_meet_and_report},
                                                   {"killed", a_killed_rank_holds_no_other}};
  const auto found = cases.find(argc > 1 ? argv[1] : "");
  if (found == cases.end() || !started_by_pmix()) return 2;
  signals_are_left_alone();
  expect(ranks == 3, std::to_string(ranks) + " ranks");
  found->second();
  std::printf("rank %d: done\n", rank);
  return mistakes > 0 ? 1 : 0;
}
