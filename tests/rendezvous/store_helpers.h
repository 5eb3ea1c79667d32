// Stores and patience for tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "rendezvous/job_store.h"

namespace heddle::testing_rendezvous {

using namespace heddle::rendezvous;

inline const std::function<bool()> never;

// Long enough for a machine that is busy; what waits so long has failed.
inline Patience patience(std::chrono::milliseconds time = std::chrono::seconds(60)) {
  return {std::chrono::steady_clock::now() + time, never};
}

#define EXPECT_OK(expression)                                                \
  do {                                                                       \
    const ::heddle::plugin::Status status_ = (expression);                   \
    EXPECT_TRUE(status_.ok()) << #expression << " failed: " << status_.text; \
  } while (false)
#define ASSERT_OK(expression)                                                \
  do {                                                                       \
    const ::heddle::plugin::Status status_ = (expression);                   \
    ASSERT_TRUE(status_.ok()) << #expression << " failed: " << status_.text; \
  } while (false)

inline void expect_error(const Status& status, heddle_status code, std::initializer_list<std::string> parts) {
  EXPECT_EQ(status.code, code) << status.text;
  for (const std::string& part : parts) EXPECT_NE(status.text.find(part), std::string::npos) << "no '" << part << "' in: " << status.text;
}

inline std::unique_ptr<Store> store_at(const std::string& rendezvous, int32_t rank = 0, int32_t ranks = 2,
                                       const std::string& communicator = "world") {
  std::unique_ptr<Store> store;
  EXPECT_OK(make_store(rendezvous, communicator, rank, ranks, &store));
  return store;
}

inline bool set(Store& store, const Key& key, const std::string& value) {
  bool written = false;
  EXPECT_OK(store.set(key, value, &written));
  return written;
}

// "-" if it is not there.
inline std::string get(Store& store, const Key& key) {
  std::string value = "-";
  bool found = false;
  EXPECT_OK(store.get(key, &value, &found));
  EXPECT_EQ(found, value != "-");
  bool has = !found;
  EXPECT_OK(store.has(key, &has));
  EXPECT_TRUE(has || !found);
  return value;
}

class EnvironmentVariable {
 public:
  EnvironmentVariable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~EnvironmentVariable() { ::unsetenv(name_); }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;

 private:
  const char* const name_;
};

// The rules of all stores. `make` makes the store of a rank, of a communicator.
using MakeStore = std::function<std::unique_ptr<Store>(int32_t rank, const std::string& communicator)>;
void expect_keys_are_written_once(const MakeStore& make);
void expect_one_of_many_threads_writes(const MakeStore& make);
void expect_waits_end(const MakeStore& make);

}  // namespace heddle::testing_rendezvous
