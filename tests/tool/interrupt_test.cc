// Events from outside that end the tool: signals, and files that shrink while they are mapped.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

bool handlers_installed(pid_t tool, int signal) {
  const std::string status = read_text("/proc/" + std::to_string(tool) + "/status");
  const size_t at = status.find("SigCgt:");
  return at != std::string::npos && (std::stoull(status.substr(at + 7), nullptr, 16) >> (signal - 1) & 1) != 0;
}

void interrupt_a_run(const Words& arguments, int signal, bool once_running) {
  const std::string name = signal == SIGINT ? "SIGINT" : "SIGTERM";
  Tool tool(arguments);
  if (once_running) tool.on_terminal();  // where progress shows
  tool.interrupt(signal, [=](const std::string& err, pid_t pid) {
    return once_running ? err.find("running") != std::string::npos : handlers_installed(pid, signal);
  });
  const Outcome outcome = tool.run();
  EXPECT_EQ(outcome.status, 128 + signal);
  EXPECT_NE(outcome.err.find("[interrupted]"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("interrupted by " + name), std::string::npos) << outcome.err;
  EXPECT_EQ(codes(checked_object(outcome, schema_of(arguments))), Words{"interrupted"});
}

TEST(ToolInterrupt, ARunEndsBetweenSteps) {
  HEDDLE_NEEDS_TERMINAL();
  const NetFolder folder(slow_net(20000));
  interrupt_a_run({"run", folder.net(), "--random", "1", "--threads", "1", "--json"}, SIGINT, true);
  interrupt_a_run({"run", folder.net(), "--random", "1", "--threads", "2", "--json"}, SIGTERM, true);
}

TEST(ToolInterrupt, RepeatedRunsEnd) {
  HEDDLE_NEEDS_TERMINAL();
  const NetFolder folder(two_outputs());
  interrupt_a_run({"run", folder.net(), "--random", "1", "--repeat", "1000000000", "--json"}, SIGINT, true);
  interrupt_a_run({"bench", folder.net(), "--repeat", "1000000", "--json"}, SIGTERM, false);
}

TEST(ToolInterrupt, EverythingElseEndsAtOnce) {
  const TemporaryFolder folder;
  write_text(folder / "b.csv", hard_buffers());
  const Words search = {"plan", "--buffers", (folder / "b.csv").string(), "--time-limit",
                        "100",  "-o",        (folder / "o.csv").string(), "--json"};
  interrupt_a_run(search, SIGINT, false);
  interrupt_a_run(search, SIGTERM, false);
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(ToolInterrupt, LeavesNoTemporaryFile) {
  const TemporaryFolder folder;
  // Writing the weights takes a while: the signal is sent when their temporary file exists.
  Tool tool({"model", "resnet50", "-o", (folder / "net.heddle").string()});
  tool.interrupt(SIGINT, [&](const std::string&, pid_t) { return files_in(folder.path()) > 0; });
  const Outcome outcome = tool.run();
  EXPECT_EQ(outcome.status, 130) << outcome.err;
  EXPECT_EQ(files_in(folder.path()), 0u);
}

TEST(ToolMappedFile, OneThatShrinksIsAnError) {
  HEDDLE_NEEDS_TERMINAL();
  // The constant is large enough to be mapped, and added as it is, never packed.
  std::string numbers = "1";
  for (int i = 1; i < 100000; ++i) numbers += ",1";
  const NetFolder folder(
      net_text("large", R"("x")", R"("y")",
               input("x", "100000") + R"(, {"name": "w", "kind": "constant", "dtype": "f32", "dims": [100000], "data": [)" + numbers + "]}",
               node("Add", R"("x", "w")", "y")));
  const std::filesystem::path net = folder / "large.heddle", weights = folder / "large.safetensors";
  ASSERT_EQ(heddle({"convert", folder.net(), net.string()}).status, 0);
  ASSERT_GT(std::filesystem::file_size(weights), 400000u);
  const Words arguments = {"run", net.string(), "--random", "1", "--repeat", "1000000000", "--json"};
  Tool tool(arguments);
  constexpr int no_signal = 0;
  tool.on_terminal().interrupt(no_signal, [&](const std::string& err, pid_t) {
    if (err.find("running") == std::string::npos) return false;
    std::filesystem::resize_file(weights, 4096);
    return true;
  });
  const Outcome outcome = tool.run();
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("became shorter while it was read"), std::string::npos) << outcome.err;
  EXPECT_EQ(codes(checked_object(outcome, schema_of(arguments))), Words{"file-truncated"});
  EXPECT_EQ(codes(heddle_json({"run", net.string(), "--random", "1"}, 3)), Words{"file-truncated"});
}

}  // namespace
}  // namespace heddle::tool_tests
