// The plugin's side of the handshake: the answers of HEDDLE_PLUGIN's function to hosts of its own and of other versions.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "plugin/host.h"
#include "plugins.h"

namespace heddle {
namespace {

class Handshake : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(example_plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    query_ = reinterpret_cast<heddle_plugin_query_function>(dlsym(library_, HEDDLE_PLUGIN_QUERY_SYMBOL));
    ASSERT_NE(query_, nullptr);
  }
  void TearDown() override {
    if (library_) dlclose(library_);
  }
  const heddle_plugin* ask(uint32_t major, uint32_t minor, uint64_t hash = HEDDLE_ABI_HASH) {
    host_.abi_major = major;
    host_.abi_minor = minor;
    host_.abi_hash = hash;
    return query_(&host_, &call_);
  }
  static void expect_numbers_only(const heddle_plugin* answer) {
    ASSERT_NE(answer, nullptr);
    EXPECT_EQ(answer->abi_major, static_cast<uint32_t>(HEDDLE_ABI_MAJOR));
    EXPECT_EQ(answer->abi_minor, static_cast<uint32_t>(HEDDLE_ABI_MINOR));
    EXPECT_EQ(answer->abi_hash, HEDDLE_ABI_HASH);
    EXPECT_EQ(answer->operator_count, 0u);
    EXPECT_EQ(answer->operators, nullptr);
    EXPECT_EQ(answer->shutdown, nullptr);
  }
  heddle_host host_ = *host_table();
  HostCall call_;
  void* library_ = nullptr;
  heddle_plugin_query_function query_ = nullptr;
};

TEST_F(Handshake, AHostOfTheSameVersionGetsTheTables) {
  const heddle_plugin* plugin = ask(HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR);
  ASSERT_NE(plugin, nullptr);
  EXPECT_EQ(plugin->struct_size, sizeof(heddle_plugin));
  EXPECT_EQ(plugin->operator_count, 1u);
  EXPECT_EQ(plugin->initialize(&host_, &call_), HEDDLE_OK);
  EXPECT_EQ(ask(HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR), plugin);  // the second request: the same tables, one more shutdown owed
  plugin->shutdown();
  EXPECT_EQ(plugin->operator_count, 1u);
  plugin->shutdown();
}

TEST_F(Handshake, OlderAndNewerHostsGetNumbersOnly) {
  for (const auto& [major, minor] : {std::pair<uint32_t, uint32_t>{HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR - 1},
                                     {HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR + 1},
                                     {HEDDLE_ABI_MAJOR + 1, 0}})
    expect_numbers_only(ask(major, minor));
}

// A host between two releases: the version is the same, the tables are not.
TEST_F(Handshake, HostsOfOtherHeadersGetNumbersOnly) {
  expect_numbers_only(ask(HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR, HEDDLE_ABI_HASH ^ 1));
  host_.struct_size = offsetof(heddle_host, abi_hash);  // a host without a hash
  expect_numbers_only(ask(HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR));
}

TEST_F(Handshake, NoHostNoTables) {
  EXPECT_EQ(query_(nullptr, nullptr), nullptr);
}

}  // namespace
}  // namespace heddle
