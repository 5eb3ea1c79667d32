// Each kind of mistake of docs/kernel_mistakes.md, made in several ways (tests/plugins/kernel_mistakes/kernel_mistakes.h), is detected
// where the page says: with one thread, with four, on the simulated device, by `heddle plugin check`, in the log. Nothing hangs, and the
// next call succeeds.
#include "plugins/kernel_mistakes/kernel_mistakes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "heddle/session.h"
#include "watched_child.h"

namespace heddle::mistakes {
namespace {

using Json = nlohmann::json;
const std::string mistaken_plugin = HEDDLE_BINARY_DIR "/lib/test/kernel_mistakes.so";

// A line of the page about a kind: where it is detected, and the names that plugin check gives to the finding.
struct Seen {
  std::set<std::string> by, findings;
};

// The lines of the page by kind. Each ends with a cell such as "run, check (`error-path` or `extent`), log".
std::map<std::string, Seen> table() {
  std::map<std::string, Seen> lines;
  std::ifstream file(HEDDLE_SOURCE_DIR "/docs/kernel_mistakes.md");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("| `", 0) != 0) continue;
    const std::string kind = line.substr(3, line.find('`', 3) - 3);
    std::string words = line.substr(line.rfind('|', line.size() - 2) + 1);
    for (char& c : words)
      if (std::string_view(",|()").find(c) != std::string_view::npos) c = ' ';
    std::istringstream split(words);
    for (std::string word; split >> word;) {
      if (word[0] == '`')
        lines[kind].findings.insert(word.substr(1, word.size() - 2));
      else if (word != "or")
        lines[kind].by.insert(word);
    }
  }
  return lines;
}

struct Mistaken {
  const KernelMistake* mistake;
  int64_t variant;
  bool is(const char* kind) const { return std::string(kind) == mistake->kind; }
  std::string name() const { return std::string(mistake->kind) + " " + std::to_string(variant) + " of " + mistake->type; }
  std::string type() const { return mistake->type; }
};

std::vector<Mistaken> all_of(const std::string& kind) {
  std::vector<Mistaken> all;
  for (const KernelMistake& one : kernel_mistakes)
    for (int64_t v = one.first; kind == one.kind && v < one.first + one.count; ++v) all.push_back({&one, v});
  return all;
}

// ---------------------------------------------------------------- nets

std::string node(const std::string& name, const std::string& type, const std::string& inputs, const std::string& attributes = "") {
  return R"({"name": ")" + name + R"(", "domain": "mistaken", "type": ")" + type + R"(", "inputs": [)" + inputs + R"(], "outputs": [")" +
         name + R"("], "attributes": {)" + attributes + "}}";
}

constexpr const char* body = R"({"heddle": 1, "name": "body", "inputs": ["a"], "outputs": ["b"],
  "values": [{"name": "a", "kind": "input"}],
  "nodes": [{"name": "b", "domain": "mistaken", "type": "Plain", "inputs": ["a"], "outputs": ["b"]}]})";

// x -> before -> culprit -> after, the last one only if `after` names its type, "Plain" or "Reading".
std::string net(int64_t elements, const std::string& type, const std::string& attributes, const std::string& after) {
  const std::string second = type == "Packing" || type == "Adding" ? R"("dtype": "f32", "dims": [5], "data": [1, 2, 3, 4, 5])"
                             : type == "Indexing"                  ? R"("dtype": "i64", "dims": [2], "data": [4, 0])"
                                                                   : "";
  std::string own = attributes;
  if (type == "Holder") own += std::string(own.empty() ? "" : ", ") + R"("body": {"net": )" + body + "}";
  return R"({"heddle": 1, "name": "net", "inputs": ["x"], "outputs": [")" + std::string(after.empty() ? "culprit" : "after") +
         R"("], "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [)" + std::to_string(elements) + "]}" +
         (second.empty() ? "" : R"(, {"name": "w", "kind": "constant", )" + second + "}") + R"(], "nodes": [)" +
         node("before", "Plain", R"("x")") + ", " + node("culprit", type, second.empty() ? R"("before")" : R"("before", "w")", own) +
         (after.empty() ? "" : ", " + node("after", after, R"("culprit")")) + "]}";
}

std::string net_of(const Mistaken& m, int64_t callback) {
  std::string after = m.type() == "Bool" ? "" : "Plain";
  if (m.is("extent")) after = std::array<const char*, 3>{"Plain", "", "Reading"}[static_cast<size_t>(m.variant / 4)];
  const std::string attributes = R"("mistake": {"string": ")" + std::string(m.mistake->kind) + R"("}, "variant": {"int": )" +
                                 std::to_string(m.variant) + R"(}, "callback": {"int": )" + std::to_string(callback) + "}";
  return net(elements_of_mistake(m.mistake->kind, m.variant), m.type(), attributes, after);
}

// ---------------------------------------------------------------- runs

struct Place {
  int threads = 1;
  std::string device = "cpu";
};

Runtime runtime_of(const Place& place) {
  RuntimeOptions options;
  options.default_plugins = false;
  options.threads = place.threads;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", mistaken_plugin, HEDDLE_BINARY_DIR "/lib/sim.so"};
  auto made = Runtime::create(options);
  if (!made.ok()) ::_exit(96);
  return *made;
}

Status run_once(Session& session, int64_t elements) {
  std::vector<float> x(static_cast<size_t>(elements), 1);
  return session.run({TensorView{DType::f32, Shape{elements}, x.data()}}).status();
}

Result<Session> open(const Runtime& runtime, const Place& place, const std::string& text) {
  SessionOptions options;
  options.device = place.device;
  return runtime.open_bytes(text.data(), text.size(), "", options);
}

Status run_new(const Runtime& runtime, const Place& place, const std::string& text, int64_t elements, int times) {
  HEDDLE_TRY(Session session, open(runtime, place, text));
  for (int i = 0; i < times; ++i) HEDDLE_CHECK(run_once(session, elements));
  return {};
}

// The function that a kernel calls from inside of its run.
struct Inside : RuntimeCall {
  Inside(const Runtime& of, const Place& at) : RuntimeCall{answer}, runtime(of), place(at) {}
  static bool answer(const RuntimeCall* self, bool run, char* why, size_t size) {
    const auto& inside = *static_cast<const Inside*>(self);
    Status status = [&]() -> Status {
      HEDDLE_TRY(Session session, open(inside.runtime, inside.place, net(5, "Plain", "", "Plain")));
      if (run) return run_once(session, 5);
      return session.prepare().status();
    }();
    std::snprintf(why, size, "a session inside of a kernel: %s", status.text().c_str());
    return status.ok();
  }
  const Runtime& runtime;
  const Place place;
};

struct Outcome {
  std::string mistake;
  ChildEnd end;
  // The error of the first call that failed; the log; the status of a net without a mistake after it.
  std::string error, log, next;
  void read() {
    std::istringstream lines(end.said);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("error ", 0) == 0) error = line;
      // Skips the warnings that an operator runs on the host, or would run better on another device.
      if (line.rfind("log ", 0) == 0 && line.find("warning[no-kernel]") == std::string::npos &&
          line.find("warning[wrong-device]") == std::string::npos)
        log += line + "\n";
      if (line.rfind("next ", 0) == 0) next = line.substr(5);
    }
  }
};

Outcome run_mistaken(const Mistaken& m, const Place& place) {
  Outcome outcome;
  outcome.mistake = m.name();
  outcome.end = in_child([&](const auto& say) {
    static std::string log;
    set_log_function([](void*, int, const char* text, size_t length) { log += "log " + std::string(text, length) + "\n"; }, nullptr);
    {
      const Runtime runtime = runtime_of(place);
      const Inside inside(runtime, place);
      const bool calls = m.is("calls-the-runtime");
      const std::string text = net_of(m, calls ? reinterpret_cast<int64_t>(static_cast<const RuntimeCall*>(&inside)) : 0);
      const int64_t elements = elements_of_mistake(m.mistake->kind, m.variant);
      Status status;
      // Runs twice in one session, or once in each of two.
      const bool anew = m.is("completes-a-run-that-is-over") && m.variant == 1;
      for (int i = 0; i < (anew ? 2 : 1) && status.ok(); ++i) status = run_new(runtime, place, text, elements, anew ? 1 : 2);
      if (!status.ok()) say("error " + status.text() + "\n");
      const Status next = run_new(runtime, place, net(5, "Plain", "", "Plain"), 5, 1);
      say("next " + next.text() + "\n");
    }
    say(log);
  });
  outcome.read();
  return outcome;
}

// ---------------------------------------------------------------- plugin check

// Returns what plugin check reports about the operator: "status", and the kind of mistake that it names.
Json checked(const Mistaken& m) {
  std::vector<std::string> words = {HEDDLE_BINARY_DIR "/bin/heddle", "plugin", "check", mistaken_plugin, "--operator", m.type(), "--json"};
  const std::string elements = std::to_string(elements_of_mistake(m.mistake->kind, m.variant));
  const std::string variant = "variant=" + std::to_string(m.variant);
  if (m.type() == "Holder") {
    words.insert(words.end(), {"--example", "f32[5]; mistake=\"" + std::string(m.mistake->kind) + "\", " + variant +
                                                R"(, body={"inputs": ["a"], "outputs": ["b"], "nodes": [)" +
                                                R"({"type": "Neg", "inputs": ["a"], "outputs": ["b"]}]})"});
  } else {
    words.insert(words.end(), {"--shape", elements, "--attribute", "mistake=" + std::string(m.mistake->kind), "--attribute", variant});
    if (m.type() == "Packing" || m.type() == "Adding") words.insert(words.end(), {"--shape", "5"});
    if (m.type() == "Indexing") words.insert(words.end(), {"--shape", "2", "--dtype", "f32", "--dtype", "i64"});
  }
  const ChildEnd end = in_child(
      [&](const auto&) {
        // The pipe is the child's standard output.
        std::vector<char*> pointers;
        for (std::string& word : words) pointers.push_back(word.data());
        pointers.push_back(nullptr);
        ::execv(pointers[0], pointers.data());
        ::_exit(99);
      },
      true);
  const Json said = Json::parse(end.said, nullptr, false);
  if (end.hangs || !said.is_object() || !said.contains("operators") || said["operators"].size() != 1)
    return {{"status", end.hangs ? "hangs" : "said " + end.said}};
  Json one = said["operators"][0];
  const std::set<std::string> not_examined = said["not_examined"];  // by a build with sanitizers
  one["examined"] = !not_examined.contains(m.is("leaks") ? "leak" : m.mistake->kind);
  return one;
}

// ---------------------------------------------------------------- the tests

class KernelMistakes : public testing::TestWithParam<std::string> {
 protected:
  void run_all(const std::string& word, const Place& place) {
    const std::set<std::string> seers = table()[GetParam()].by;
    for (const Mistaken& m : all_of(GetParam())) {
      const Outcome outcome = run_mistaken(m, place);
      const std::string said = outcome.mistake + " ended with " + std::to_string(outcome.end.status) + " and said:\n" + outcome.end.said;
      if (outcome.end.hangs) {
        ADD_FAILURE() << "hangs: " << said;
        continue;
      }
      const auto names = [&](const std::string& text) {
        return text.find("\"culprit\"") != std::string::npos || text.find("mistaken::" + m.type()) != std::string::npos ||
               text.find("kernel_mistakes:" + m.type()) != std::string::npos;
      };
      const bool whole = outcome.end.status == 0 && outcome.next == "ok";
      // The run must not be reported as cancelled.
      const bool named = outcome.error.find("\"culprit\" (mistaken::" + m.type() + ")") != std::string::npos &&
                         outcome.error.find("error[cancelled]") == std::string::npos;
      if (seers.contains(word)) {
        EXPECT_TRUE(whole && named) << word << " does not see it: " << said;
      }
      if (seers.contains("log")) {
        EXPECT_TRUE(whole && names(outcome.log)) << "the log does not say it: " << said;
        EXPECT_TRUE(seers.contains(word) || outcome.error.empty()) << "the table has the log alone: " << said;
      }
    }
  }
};

TEST_P(KernelMistakes, AreSeenWithOneThread) {
  run_all("run", {1, "cpu"});
}
TEST_P(KernelMistakes, AreSeenWithFourThreads) {
  run_all("run", {4, "cpu"});
}
TEST_P(KernelMistakes, AreSeenOnTheSimulatedDevice) {
  run_all("sim", {1, "sim:0"});
}
TEST_P(KernelMistakes, AreSeenByPluginCheck) {
  const Seen seen = table()[GetParam()];
  if (!seen.by.contains("check")) return;
  std::set<std::string> found;
  for (const Mistaken& m : all_of(GetParam())) {
    const Json one = checked(m);
    if (one.value("examined", true)) {
      EXPECT_EQ(one["status"], "fail") << m.name() << " " << one.dump();
      found.insert(one.value("mistake", ""));
    }
  }
  if (!found.empty()) {
    EXPECT_EQ(found, seen.findings);
  }
}

// Where there is no mistake, nothing reports one.
TEST(KernelMistakesControl, OperatorsWithoutAMistakePassEverywhere) {
  std::set<std::string> types;
  for (const KernelMistake& one : kernel_mistakes) types.insert(one.type);
  for (const std::string& type : types) {
    SCOPED_TRACE(type);
    const KernelMistake none = {.kind = "none", .type = type.c_str(), .first = 0, .count = 1};
    const Mistaken m = {&none, 0};
    for (const Place& place : {Place{1, "cpu"}, Place{4, "cpu"}, Place{1, "sim:0"}}) {
      const Outcome outcome = run_mistaken(m, place);
      EXPECT_TRUE(outcome.end.status == 0 && outcome.error.empty() && outcome.log.empty() && outcome.next == "ok") << outcome.end.said;
    }
    const Json one = checked(m);
    EXPECT_EQ(one["status"], "pass") << one.dump();
  }
}

std::vector<std::string> kinds() {
  std::vector<std::string> all;
  for (const auto& [kind, seen] : table()) all.push_back(kind);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Kinds, KernelMistakes, testing::ValuesIn(kinds()), [](const auto& instance) {
  std::string name = instance.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

TEST(KernelMistakesTable, HasEveryKindThatIsMadeAndNobodyIsBlind) {
  std::set<std::string> made, told;
  int64_t count = 0;
  for (const KernelMistake& one : kernel_mistakes) made.insert(one.kind), count += one.count;
  for (const auto& [kind, seen] : table()) {
    told.insert(kind);
    EXPECT_FALSE(seen.by.empty()) << kind;
    for (const std::string& word : seen.by)
      EXPECT_TRUE((std::set<std::string>{"run", "sim", "check", "log"}.contains(word))) << kind << ": " << word;
    EXPECT_EQ(seen.by.contains("check"), !seen.findings.empty()) << kind << ": check names what it finds";
  }
  EXPECT_EQ(told, made);
  RecordProperty("mistakes", static_cast<int>(count));
  EXPECT_GE(count, 200);
}

}  // namespace
}  // namespace heddle::mistakes
