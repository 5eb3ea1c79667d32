// make_device_backend: a class of functions becomes the table of heddle/device_plugin.h, all of it.
#include "heddle/op/device_backend.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace heddle::plugin {
namespace {

struct Smallest {
  static heddle_status count(int32_t*, const heddle_call*) { return HEDDLE_OK; }
  static heddle_status open(int32_t, void**, const heddle_call*) { return HEDDLE_OK; }
  static void close(void*) {}
  static const char* description(void*) { return "smallest"; }
  static heddle_status memory_info(void*, uint64_t*, uint64_t*, const heddle_call*) { return HEDDLE_OK; }
  static heddle_status properties(void*, heddle_device_properties*, const heddle_call*) { return HEDDLE_OK; }
  static heddle_status allocate(void*, uint64_t, void**, const heddle_call*) { return HEDDLE_OK; }
  static void release(void*, void*) {}
  static heddle_status create_stream(void*, const heddle_stream_request*, void**, const heddle_call*) { return HEDDLE_OK; }
  static void destroy_stream(void*, void*) {}
  static heddle_status create_event(void*, void**, const heddle_call*) { return HEDDLE_OK; }
  static void destroy_event(void*, void*) {}
  static heddle_status enqueue(void*, void*, const heddle_work*, const heddle_call*) { return HEDDLE_OK; }
  static heddle_status synchronize(void*, void*, const heddle_call*) { return HEDDLE_OK; }
};

struct Largest : Smallest {
  static heddle_status query(void*, void*, const heddle_call*) { return HEDDLE_OK; }
  static uint64_t failed_label(void*, void*) { return 7; }
  static heddle_status abort_stream(void*, void*, const heddle_call*) { return HEDDLE_OK; }
  static heddle_status allocate_host(void*, uint64_t, void**, const heddle_call*) { return HEDDLE_OK; }
  static void release_host(void*, void*) {}
  static heddle_status register_host(void*, void*, uint64_t, const heddle_call*) { return HEDDLE_OK; }
  static void unregister_host(void*, void*) {}
  static int32_t reaches(void*, void*) { return 1; }
  static heddle_status describe(const char*, uint64_t, const heddle_call*) { return HEDDLE_OK; }
  static void leave(void*) {}
  static heddle_status enqueue_group(void* const*, void* const*, const heddle_work*, uint32_t, const heddle_call*) { return HEDDLE_OK; }
};

// The members of the table by their names, in the header's order.
std::set<std::string> declared_functions() {
  std::ifstream file(HEDDLE_SOURCE_DIR "/runtime/include/heddle/device_plugin.h");
  std::stringstream text;
  text << file.rdbuf();
  const std::string all = text.str(), begin = "typedef struct heddle_device_backend {";
  const size_t at = all.find(begin), end = all.find("} heddle_device_backend;", at);
  const std::string body = all.substr(at, end - at);
  const std::regex pointer(R"(\(\*(\w+)\)\()");
  std::set<std::string> names;
  for (std::sregex_iterator it(body.begin(), body.end(), pointer), last; it != last; ++it) names.insert((*it)[1]);
  return names;
}

TEST(DeviceBackend, EveryFunctionOfTheTableIsTaken) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/runtime/include/heddle/op/device_backend.h");
  std::stringstream text;
  text << file.rdbuf();
  const std::set<std::string> declared = declared_functions();
  EXPECT_GE(declared.size(), 24u) << "this test no longer sees the table";
  for (const std::string& name : declared)
    EXPECT_NE(text.str().find("b." + name + " = "), std::string::npos) << name << " is not taken from the class";
}

TEST(DeviceBackend, WhatIsOptionalMayBeLeftOut) {
  const heddle_device_backend smallest = make_device_backend<Smallest>("small"), largest = make_device_backend<Largest>("large");
  EXPECT_EQ(smallest.struct_size, sizeof(heddle_device_backend));
  EXPECT_STREQ(smallest.kind, "small");
  EXPECT_EQ(smallest.description(nullptr), std::string("smallest"));
  EXPECT_EQ(smallest.query, nullptr);
  EXPECT_EQ(smallest.leave, nullptr);
  EXPECT_EQ(smallest.allocate_host, nullptr);
  EXPECT_EQ(largest.failed_label(nullptr, nullptr), 7u);
  EXPECT_EQ(largest.reaches(nullptr, nullptr), 1);
  EXPECT_NE(largest.describe, nullptr);
  // Nothing of the largest is null but the name of a kind whose kernels it runs.
  const auto* words = reinterpret_cast<const char*>(&largest);
  const void* null = nullptr;
  int nulls = 0;
  for (size_t at = offsetof(heddle_device_backend, count); at < sizeof(largest); at += sizeof(void*))
    nulls += std::memcmp(words + at, &null, sizeof(void*)) == 0 ? 1 : 0;
  EXPECT_EQ(nulls, 1);
  EXPECT_EQ(largest.runs_kernels_of, nullptr);
}

}  // namespace
}  // namespace heddle::plugin
