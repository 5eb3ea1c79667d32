// heddle run --trace and --report: what they show is the median run, with the numbers of the run and of the plan.
#include <cmath>
#include <map>
#include <regex>

#include "tool/tool_runner.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolRun, TraceIsAnEventPerStepAndWorker) {
  const NetFolder folder(slow_net(3));
  ASSERT_EQ(heddle({"run", folder.net(), "--random", "1", "--threads", "1", "--trace", folder.file("t.json")}).status, 0);
  const std::string text = read_text(folder / "t.json");
  const Json trace = Json::parse(text, nullptr, false);
  ASSERT_TRUE(trace.is_object());
  int steps = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++steps;
    EXPECT_EQ(event["cat"], "MatMul");
    EXPECT_GT(event["dur"].get<double>(), 0.0);
  }
  EXPECT_EQ(steps, 3);
  // Times are whole nanoseconds.
  const std::regex time(R"re("(ts|dur)": [0-9]+\.[0-9]{3}[,}])re");
  EXPECT_EQ(std::distance(std::sregex_iterator(text.begin(), text.end(), time), {}), 6) << text;
}

// Viewers show a track's events as a stack, for which they must not overlap. Of a net on a device, streams have tracks too.
TEST(ToolRun, TraceHasNoEventsThatOverlapOnATrack) {
  const NetFolder folder(two_outputs());
  for (const Words& more : {Words{}, Words{"--device", "sim:0", "--copies", "auto"}}) {
    Words words = {"run", folder.net(), "--random", "1", "--threads", "2", "--repeat", "5", "--trace", folder.file("t.json")};
    words.insert(words.end(), more.begin(), more.end());
    ASSERT_EQ(heddle(words).status, 0);
    std::map<int, double> ends;
    size_t streams = 0;
    const Json trace = Json::parse(read_text(folder / "t.json"));
    for (const Json& event : trace["traceEvents"]) {
      if (event["name"] == "thread_name" && event["args"]["name"].get<std::string>().find(" stream ") != std::string::npos) ++streams;
      if (event["ph"] != "X") continue;
      double& end = ends[event["tid"].get<int>()];
      EXPECT_GE(event["ts"].get<double>(), end - 1e-6) << event;
      end = event["ts"].get<double>() + event["dur"].get<double>();
      const Json& spread = event["args"]["of_all_runs_ns"];
      EXPECT_LE(spread["min"], spread["median"]);
      EXPECT_LE(spread["median"], spread["max"]);
    }
    EXPECT_EQ(streams > 0, !more.empty());
  }
}

// All threads of the run have a row and a name, whether they had work or not.
TEST(ToolRun, TraceNamesItsThreads) {
  const NetFolder folder(two_outputs());
  ASSERT_EQ(heddle({"run", folder.net(), "--random", "1", "--threads", "2", "--trace", folder.file("t.json")}).status, 0);
  Words names;
  const Json trace = Json::parse(read_text(folder / "t.json"), nullptr, false);
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "M" && event["args"].contains("name"))
      names.push_back(event["name"].get<std::string>() + " " + event["tid"].dump() + " " + event["args"]["name"].get<std::string>());
  EXPECT_EQ(names, (Words{"process_name 1 two", "thread_name 1 worker 0, the caller", "thread_name 2 worker 1"}));
}

// The trace is of the run that took as long as the median of all runs; of up to 101 runs, of exactly that one.
TEST(ToolRun, TraceAndReportShowTheMedianRun) {
  const NetFolder folder(two_outputs());
  for (const char* repeat : {"1", "2", "7", "101"}) {
    const Json object = heddle_json({"run", folder.net(), "--random", "1", "--repeat", repeat, "--warmup", "3", "--trace",
                                     folder.file("t.json"), "--report", folder.file("r.html")});
    const Json run = Json::parse(read_text(folder / "t.json"))["otherData"];
    EXPECT_EQ(run["latency_ns"], object["latency_ns"]["median"]) << repeat;
    EXPECT_EQ(run["runs"].dump(), repeat);
    EXPECT_NE(read_text(folder / "r.html").find("Timeline of run " + run["run"].dump() + " of " + repeat + "<"), std::string::npos)
        << repeat;
  }
  ASSERT_EQ(heddle({"run", folder.net(), "--random", "1", "--repeat", "1000", "--trace", folder.file("t.json")}).status, 0);
  EXPECT_EQ(Json::parse(read_text(folder / "t.json"))["otherData"]["runs"], 1000);
}

TEST(ToolRun, ReportIsOnePageWithEscapedNames) {
  const std::string name = "<script>alert(1)</script>&";
  const NetFolder folder(net_text(name, R"("x")", "\"" + name + "\"", input("x", "64, 64"), node("MatMul", R"("x", "x")", name)));
  ASSERT_EQ(heddle({"run", folder.net(), "--random", "1", "--report", folder.file("r.html")}).status, 0);
  const std::string page = read_text(folder / "r.html");
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0u);
  EXPECT_EQ(page.find("<script"), page.rfind("<script")) << "one, of the tool's own";
  EXPECT_NE(page.find("&lt;script&gt;alert(1)&lt;/script&gt;&amp;"), std::string::npos);
  // The page has table, timeline and memory, and loads nothing from elsewhere.
  EXPECT_NE(page.find("<td>MatMul</td>"), std::string::npos);
  EXPECT_NE(page.find(" id=\"timeline\""), std::string::npos);
  size_t pictures = 0;
  for (size_t at = page.find("<svg "); at != std::string::npos; at = page.find("<svg ", at + 1)) ++pictures;
  EXPECT_EQ(pictures, 3u) << "the timeline, the memory and the operators";
  for (const char* elsewhere : {"src=", "href=", "url("}) EXPECT_EQ(page.find(elsewhere), std::string::npos) << elsewhere;
  EXPECT_EQ(heddle({"run", folder.net(), "--random", "1", "--report", folder.file("r.html"), "--check-numerics"}).status, 2);
}

// Reads "5.6 us" as nanoseconds, and how much its rounding may have changed.
std::pair<double, double> duration_of(const std::string& number, const std::string& unit) {
  const double one = unit == "ns" ? 1 : unit == "us" ? 1e3 : unit == "ms" ? 1e6 : 1e9;
  const size_t point = number.find('.');
  const double last = point == std::string::npos ? 1 : std::pow(10.0, -static_cast<double>(number.size() - point - 1));
  return {std::stod(number) * one, 0.5001 * last * one};
}

// The page's table of steps and its timeline have the numbers of the trace and of the plan, which are the run's own.
TEST(ToolRun, ReportHasTheNumbersOfTraceAndPlan) {
  const NetFolder folder(two_outputs());
  heddle_json({"run", folder.net(), "--random", "1", "--repeat", "7", "--trace", folder.file("t.json"), "--report", folder.file("r.html"),
               "--threads", "1"});
  const Json plan = heddle_json({"plan", folder.net(), "--threads", "1"}), trace = Json::parse(read_text(folder / "t.json"));
  const std::string page = read_text(folder / "r.html");
  static const std::regex row(
      "<tr><td class=\"n\">(\\d+)</td><td>([^<]*)</td><td>(\\w+)</td><td>[^<]*</td><td>[^<]*</td><td class=\"n\">\\d+</td>"
      "<td class=\"n\">\\d+</td><td class=\"n\" data-v=\"(\\d+)\">[^<]*</td><td class=\"n\" data-v=\"[^\"]*\">[^<]*</td>"
      "<td class=\"n\" data-v=\"(\\d+)\">[^<]*</td><td class=\"n\">(\\d+)</td>");
  static const std::regex span(R"re(<title>step (\d+): (\S+) \(\w+\), ([\d.]+) (ns|us|ms|s) from ([\d.]+) (ns|us|ms|s) on</title>)re");
  std::map<size_t, std::smatch> rows, spans;
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) rows[std::stoull((*at)[1])] = *at;
  for (std::sregex_iterator at(page.begin(), page.end(), span), end; at != end; ++at) spans[std::stoull((*at)[1])] = *at;
  size_t steps = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const auto step = event["args"]["step"].get<size_t>();
    const double ns = event["dur"].get<double>() * 1000;
    ASSERT_TRUE(rows.contains(step) && spans.contains(step)) << event;
    EXPECT_EQ(rows[step][3], event["cat"].get<std::string>());
    EXPECT_NEAR(std::stod(rows[step][4]), ns, 0.5);
    EXPECT_EQ(rows[step][5], event["args"]["of_all_runs_ns"]["median"].dump());
    EXPECT_EQ(rows[step][6], plan["steps"][step]["bytes"].dump());
    const auto [length, rounded] = duration_of(spans[step][3], spans[step][4]);
    EXPECT_NEAR(length, ns, rounded);
    const auto [begin, rounded_begin] = duration_of(spans[step][5], spans[step][6]);
    EXPECT_NEAR(begin, event["ts"].get<double>() * 1000, rounded_begin);
    ++steps;
  }
  EXPECT_EQ(steps, plan["steps"].size());
  EXPECT_EQ(rows.size(), steps);
}

}  // namespace
}  // namespace heddle::tool_tests
