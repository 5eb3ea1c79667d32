// The data that make_parity.py has written: initial values, batches, and the results of PyTorch's training.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text/json_document.h"
#include "heddle/tensor.h"

namespace heddle::testing_derive {

struct Numbers {
  Shape shape;  // only if stored on its own
  std::vector<double> data;
};
using NamedNumbers = std::map<std::string, Numbers>;

struct ParityRun {
  std::string name, optimizer, schedule;
  double rate = 0, clip_norm = 0;
  int64_t warm_up = 0;
  std::vector<std::pair<std::string, double>> settings;
  std::vector<std::string> dense;
  std::vector<std::pair<std::string, std::vector<double>>> losses;  // by step
  NamedNumbers variables;                                           // at the end; without shapes
};

struct ParityFile {
  NamedNumbers variables;             // at the beginning
  std::vector<NamedNumbers> batches;  // by input
  std::vector<ParityRun> runs;
};

// Calls f(key, value) for each member.
template <class F>
void each_member(JsonValue object, F f) {
  for (auto member = object.begin(); member != object.end(); ++member) {
    const std::string key((*member).text());
    ++member;
    f(key, *member);
  }
}

inline std::vector<double> doubles(JsonValue array) {
  std::vector<double> all;
  for (const JsonValue number : array) all.push_back(number.real().value());
  return all;
}

inline NamedNumbers tensors(JsonValue object) {
  NamedNumbers all;
  each_member(object, [&](const std::string& name, JsonValue tensor) {
    const JsonValue dims = tensor.find("dims").value();
    for (const JsonValue dim : dims) all[name].shape.push_back(dim.integer().value());
    all[name].data = doubles(tensor.find("data").value());
  });
  return all;
}

inline ParityRun parity_run(JsonValue object) {
  ParityRun run;
  each_member(object, [&](const std::string& key, JsonValue value) {
    if (key == "name") run.name = value.text();
    if (key == "optimizer") run.optimizer = value.text();
    if (key == "schedule") run.schedule = value.text();
    if (key == "rate") run.rate = value.real().value();
    if (key == "clip_norm") run.clip_norm = value.real().value();
    if (key == "warm_up") run.warm_up = value.integer().value();
    if (key == "settings") each_member(value, [&](const std::string& name, JsonValue v) { run.settings.emplace_back(name, *v.real()); });
    if (key == "losses") each_member(value, [&](const std::string& name, JsonValue v) { run.losses.emplace_back(name, doubles(v)); });
    if (key == "variables") each_member(value, [&](const std::string& name, JsonValue v) { run.variables[name].data = doubles(v); });
    if (key == "dense")
      for (const JsonValue name : value) run.dense.emplace_back(name.text());
  });
  return run;
}

inline ParityFile parity_file(const std::string& net) {
  const auto bytes = read_file(std::filesystem::path(HEDDLE_SOURCE_DIR) / "tests/derive/parity" / (net + ".json"), int64_t{1} << 20);
  EXPECT_TRUE(bytes.ok()) << bytes.status().text();
  const auto document = JsonDocument::parse({reinterpret_cast<const char*>(bytes->data.get()), bytes->size}, 8);
  EXPECT_TRUE(document.ok()) << document.status().text();
  ParityFile file;
  each_member(document->root(), [&](const std::string& key, JsonValue value) {
    if (key == "variables") file.variables = tensors(value);
    if (key == "batches")
      for (const JsonValue batch : value) file.batches.push_back(tensors(batch));
    if (key == "runs")
      for (const JsonValue run : value) file.runs.push_back(parity_run(run));
  });
  return file;
}

}  // namespace heddle::testing_derive
