// Operators whose texts, files and names are as unfit for pages as they may be; the plugin's own name is a path.
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

Op named(const char* name, int32_t version = 1) {
  Op op(name, "hostile", version);
  op.doc("Gives | bars,\n# headings, `marks`, \\| slashes, <script>alert(1)</script> and \x1b[31mcolours.")
      .formula("```\n| y = x")
      .in("x", dtypes<float>())
      .out("y", same_as("x"), dtypes<float>())
      .pointwise("x");
  return op;
}

}  // namespace

HEDDLE_PLUGIN("../outside", "1.0", plugin) {
  plugin.add(named("my_op"), "src/README/x.cc");
  plugin.add(named("my-op"), "src/a|b c)/`x`.cc");
  plugin.add(named("twice"), "src/\x1b[5m/x.cc");
  plugin.add(named("twice", 2), "src/\x1b[5m/x.cc");
  plugin.add(named("other"), "../../x.cc");
}
