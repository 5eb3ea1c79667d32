// Loading, sharing and unloading: a plugin is in the process exactly as long as it has a user.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "operator_runner/operator_runner.h"
#include "plugins.h"

namespace heddle {
namespace {

OperatorCall scale_call() {
  OperatorCall call;
  call.domain = "example";
  call.type = "Scale";
  call.attributes = {{"factor", 3.0}};
  call.inputs = {floats(Shape{2}, {1, 2})};
  return call;
}

size_t entries(const char* folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(Lifetime, AThousandLoadsLeaveNothingBehind) {
  size_t files = 0, threads = 0;
  for (int i = 0; i < 1000; ++i) {
    Registry registry;
    ASSERT_TRUE(registry.load(example_plugin).ok());
    ASSERT_TRUE(is_mapped("example"));
    const auto result = run_operator(registry, scale_call());
    ASSERT_TRUE(result.ok()) << result.status().text();
    ASSERT_EQ(to_floats(*result.value()[0]), (std::vector<float>{3, 6}));
    ASSERT_TRUE(registry.unload("example").ok());
    ASSERT_FALSE(is_mapped("example"));
    if (i == 10) files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
  }
  EXPECT_EQ(entries("/proc/self/fd"), files);
  EXPECT_EQ(entries("/proc/self/task"), threads);
}

TEST(Lifetime, ASnapshotKeepsThePluginLoaded) {
  Registry registry;
  ASSERT_TRUE(registry.load(example_plugin).ok());
  auto snapshot = registry.snapshot();
  ASSERT_TRUE(registry.unload("example").ok());
  EXPECT_EQ(run_operator(registry, scale_call()).status().code(), Code::unknown_operator);
  EXPECT_TRUE(run_operator(*snapshot, scale_call()).ok());
  snapshot = nullptr;
  EXPECT_FALSE(is_mapped("example"));
}

// Two registries are two users of one library: its tables must not be rebuilt under the first, nor vanish with it.
TEST(Lifetime, RegistriesShareALibrary) {
  auto first = std::make_unique<Registry>();
  ASSERT_TRUE(first->load(example_plugin).ok());
  const heddle_operator* op = first->snapshot()->find_operator("example", "Scale")->op;
  Registry second;
  ASSERT_TRUE(second.load(example_plugin).ok());
  EXPECT_EQ(second.snapshot()->find_operator("example", "Scale")->op, op);
  first = nullptr;
  EXPECT_TRUE(run_operator(second, scale_call()).ok());
}

TEST(Lifetime, ManyThreadsLoadAndUnload) {
  std::vector<std::thread> threads;
  std::vector<std::string> failures(8);
  for (size_t t = 0; t < failures.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50 && failures[t].empty(); ++i) {
        Registry registry;
        Status status = registry.load(example_plugin);
        if (status.ok()) status = run_operator(registry, scale_call()).status();
        if (!status.ok()) failures[t] = status.text();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
  EXPECT_FALSE(is_mapped("example"));
}

TEST(Lifetime, ALibraryIsKnownByWhatItIsNotByItsPath) {
  const std::string link = testing::TempDir() + "/heddle_link.so";
  std::filesystem::remove(link);
  std::filesystem::create_symlink(example_plugin, link);
  Registry registry;
  ASSERT_TRUE(registry.load(example_plugin).ok());
  const auto before = registry.snapshot();
  EXPECT_TRUE(registry.load(link).ok());  // the same file
  EXPECT_EQ(registry.snapshot(), before);
  std::filesystem::remove(link);
}

}  // namespace
}  // namespace heddle
