// The promises of docs/security.md about looking at a net: the commands that only look run no kernel.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolSecurity, LookingAtANetRunsNoKernel) {
  // The kernel of this operator ends the process.
  const std::string crash = node("Segfault", R"("x")", "y", R"(, "domain": "hostile")");
  const NetFolder of_input(net_text("of_input", R"("x")", R"("y")", input("x", "2"), crash));
  const NetFolder of_constant(
      net_text("of_constant", "", R"("y")", R"({"name": "x", "kind": "constant", "dtype": "f32", "dims": [2], "data": [1, 2]})", crash));
  const Words no_evaluation = {"--limit", "folded_bytes=0", "--limit", "evaluated_elements=0"};
  const auto look = [](Words arguments, const Words& more) {
    arguments.insert(arguments.end(), {"--plugin", test_plugin("hostile_crash")});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = heddle(arguments);
    EXPECT_EQ(outcome.status, 0) << ::testing::PrintToString(arguments) << outcome.err;
  };
  for (const NetFolder* folder : {&of_input, &of_constant}) {
    look({"inspect", folder->net()}, {});
    look({"inspect", folder->net(), "--stats"}, {});
    look({"inspect", folder->net(), "--dot"}, {});
    look({"convert", folder->net(), folder->file("b.heddle")}, {});
    for (const char* command : {"check", "plan"}) look({command, folder->net()}, folder == &of_constant ? no_evaluation : Words{});
  }
  // A kernel that ran would have been noticed.
  EXPECT_NE(heddle({"run", of_input.net(), "--random", "1", "--plugin", test_plugin("hostile_crash")}).status, 0);
}

}  // namespace
}  // namespace heddle::tool_tests
