// Calls that are run again and again, and the allocations meanwhile.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "allocations.h"
#include "heddle/session.h"
#include "net/net.h"

namespace heddle::testing_steady {

inline const bool long_tests = std::getenv("HEDDLE_LONG_TESTS") != nullptr;

// Returns a runtime with the CPU's plugin and the simulated devices.
inline Runtime runtime_with_devices(int threads = 2) {
  RuntimeOptions options;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", HEDDLE_BINARY_DIR "/lib/sim.so"};
  options.default_plugins = false;
  options.threads = threads;
  auto made = Runtime::create(options);
  EXPECT_TRUE(made.ok()) << made.status().text();
  return *made;
}

// The inputs of one call of Session::run and memory for its outputs.
struct Call {
  std::vector<TensorView> inputs, outputs;
  std::vector<std::shared_ptr<const Blob>> owners;

  void add_input(std::shared_ptr<const Blob> content) {
    inputs.push_back({content->dtype, content->shape, const_cast<std::byte*>(content->data)});
    owners.push_back(std::move(content));
  }
  // Allocates memory for outputs of the first run's types.
  Status allocate_outputs(Session& session) {
    HEDDLE_TRY(const std::vector<Tensor> results, session.run(inputs));
    for (const Tensor& result : results) {
      std::byte* data = nullptr;
      owners.push_back(Blob::allocate(result.dtype(), result.shape(), &data));
      outputs.push_back({result.dtype(), result.shape(), data});
    }
    return {};
  }
  bool run(Session& session) { return session.run(inputs.data(), inputs.size(), outputs.data(), outputs.size()).ok(); }
};

// The number of rounds that are run before and while allocations are counted. Counting ends early, but not before `at_least`, when it takes
// longer than `patience_ms`.
struct Effort {
  int warm_up = 30;
  int runs = 1000;
  int at_least = 1000;
  int patience_ms = 0;
};

// The loader allocates the thread-local variables of oneDNN and libgomp when a thread first calls them; no library of ours has any. Only
// oneDNN uses libgomp.
inline bool is_onednn(const std::string& library) {
  const auto from = [&](const char* name) { return library.find(name) != std::string::npos; };
  return from("dnnl") || from("libgomp") || from("ld-linux");
}

// Returns the allocations by library while the calls are run in turns, and the number of rounds.
inline std::pair<std::map<std::string, int64_t>, int> count_allocations(Session& session, std::vector<Call>& calls, const Effort& effort) {
  bool ok = true;
  int rounds = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(effort.patience_ms);
  AllocationCount::start();
  for (; rounds < effort.runs && (rounds < effort.at_least || std::chrono::steady_clock::now() < end); ++rounds)
    for (Call& call : calls) ok = call.run(session) && ok;
  const auto counts = AllocationCount::stop();
  EXPECT_TRUE(ok);
  return {counts, rounds};
}

// Runs the calls in turns. Prints oneDNN's allocations by round; any of ours is a failure at once. On a busy machine one of oneTBB's
// threads may first take part when counting has begun, and oneTBB allocates its memory then: that happens once, so that one stretch of
// three has to be free of it.
inline void expect_only_onednn(Session& session, std::vector<Call>& calls, const Effort& effort, const std::string& what, bool say = true) {
  for (int i = 0; i < effort.warm_up; ++i)
    for (Call& call : calls) ASSERT_TRUE(call.run(session)) << what;
  int64_t tbb = 1;
  for (int stretch = 0; stretch < 3 && tbb > 0; ++stretch) {
    const auto [counts, rounds] = count_allocations(session, calls, effort);
    int64_t onednn = 0;
    tbb = 0;
    for (const auto& [library, count] : counts)
      if (is_onednn(library))
        onednn += count;
      else if (library.rfind("libtbb", 0) == 0)
        tbb += count;
      else
        ADD_FAILURE() << what << ": " << count << " allocations by " << library;
    if (say && tbb == 0)
      std::printf("%s: %d rounds of %zu shapes, 0 allocations, %.1f a round inside oneDNN\n", what.c_str(), rounds, calls.size(),
                  static_cast<double>(onednn) / rounds);
  }
  EXPECT_EQ(tbb, 0) << what << ": allocations by oneTBB in each of three stretches";
}

}  // namespace heddle::testing_steady
