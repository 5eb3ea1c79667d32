// Pipes: nets, tensors and pictures from standard input, outputs to standard output.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// Returns the exit status of a script of bash, in which $heddle is the tool, and its output and errors.
Outcome shell(const NetFolder& folder, const std::string& script) {
  const std::string file = folder.file("script");
  write_text(file, "set -o pipefail\ncd " + folder.path().string() +
                       "\nexport HEDDLE_PLUGIN_DIR=" HEDDLE_BINARY_DIR "/lib/heddle/plugins\nheddle=" + HEDDLE_BINARY_DIR "/bin/heddle\n" +
                       script + "\n");
  const int status = std::system(("bash " + file + " > " + folder.file("out") + " 2> " + folder.file("err")).c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_text(folder / "out"), read_text(folder / "err")};
}

class ToolStreams : public ::testing::Test {
 protected:
  ToolStreams()
      : folder(
            net_text("two", R"("x")", R"("a", "b")", input("x", "2, 3"), node("Relu", R"("x")", "a") + ", " + node("Exp", R"("a")", "b"))) {
    const Outcome made =
        heddle({"run", folder.net(), "--random", "1", "--output", "a=" + folder.file("x.npy"), "--output", "b=" + folder.file("b.npy")});
    EXPECT_EQ(made.status, 0) << made.err;
    const Outcome saved = heddle({"run", folder.net(), "--random", "1", "--output", "a=" + folder.file("x.safetensors")});
    EXPECT_EQ(saved.status, 0) << saved.err;
    write_text(folder / "x.csv", "p,q,r\n1,2,3\n4,5,6\n");
  }
  NetFolder folder;
};

// A file, "-", /dev/stdin from a pipe and from a file, and a pipe with a name give the same bits.
TEST_F(ToolStreams, CarryTensors) {
  const Outcome outcome = shell(folder, R"($heddle run net.json --input x=x.npy --output b=ref.npy --quiet
    cat x.npy | $heddle run net.json --input x=- --output b=- | cmp - ref.npy || exit 11
    cat x.safetensors | $heddle run net.json --input x=/dev/stdin --output b=/dev/stdout | cmp - ref.npy || exit 12
    $heddle run net.json --input x=/dev/stdin --output b=- < x.npy | cmp - ref.npy || exit 13
    $heddle run net.json --input x=<(cat x.npy) --output b=- | cmp - ref.npy || exit 14
    cat x.csv | $heddle run net.json --input x=- --quiet || exit 15
    cp x.npy nameless; $heddle run net.json --input x=nameless --output b=- | cmp - ref.npy || exit 16
    cat x.npy | $heddle run net.json --input x=- --output a=- | $heddle run net.json --input x=- --output b=- --quiet | cmp - ref.npy || exit 17
    mkfifo pipe; cmp pipe ref.npy & $heddle run net.json --input x=x.npy --output b=pipe --quiet && wait $! || exit 18)");
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out, "") << "text for people is on stderr where a tensor is on stdout";
  EXPECT_NE(outcome.err.find("latency median"), std::string::npos) << outcome.err;
}

TEST_F(ToolStreams, CarryNetsOfBothForms) {
  const Outcome outcome = shell(folder, R"($heddle convert net.json net.heddle --quiet
    for net in net.json net.heddle; do
      cat $net | $heddle run - --random 1 --print b > out.$net || exit 11
      cat $net | $heddle plan - > /dev/null || exit 12
      cat $net | $heddle check - > /dev/null || exit 13
      cat $net | $heddle inspect - > /dev/null || exit 14
      cat $net | $heddle bench - --repeat 2 > /dev/null || exit 15
      cat $net | $heddle convert - from.json --quiet || exit 16
      cmp from.json net.json || true
    done
    cmp <(grep -v latency out.net.json) <(grep -v latency out.net.heddle))");
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
}

TEST_F(ToolStreams, CarryPictures) {
  const Outcome outcome = shell(folder, R"($heddle plan net.json --svg file.svg --quiet
    $heddle plan net.json --svg - 2> /dev/null | cmp - file.svg || exit 11
    $heddle plan net.json --svg-net - 2> /dev/null | grep -q '</svg>' || exit 12
    $heddle run net.json --random 1 --trace - 2> /dev/null | grep -q traceEvents || exit 13
    $heddle run net.json --random 1 --report - 2> /dev/null | grep -q '</html>' || exit 14
    $heddle bench net.json --svg - 2> /dev/null | grep -q '</svg>' || exit 15)");
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
}

TEST_F(ToolStreams, ThatAreWrongAreSaidToBe) {
  const auto says = [&](const std::string& script, int status, const std::string& text) {
    const Outcome outcome = shell(folder, script);
    EXPECT_EQ(outcome.status, status) << script << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << script << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << script;
  };
  says("$heddle run net.json --input x=- < /dev/null", 2, "standard input holds nothing");
  says("head -c 300 /dev/zero | $heddle run net.json --input x=-", 2, "standard input holds no kind of tensor");
  says("head -c 100 x.npy | $heddle run net.json --input x=-", 3, "error[");
  says("echo '{' | $heddle run - --random 1", 3, "error[syntax]");
  says("$heddle run net.json --random 1 --output a=- --output b=-", 2, "would be written over");
  says("$heddle run net.json --random 1 --output a=- --json > /dev/null", 2, "");
  says("cat x.npy | $heddle run net.json --input x=- --limit weight_file_bytes=16 --quiet", 4, "weight_file_bytes");
  says("$heddle run net.json --random 1 --output a=- --quiet > /dev/full", 3, "file-unwritable");
  says("$heddle run net.json --input x=/nowhere/pipe", 3, "file-not-found");
}

// A reader that has enough, as `head`, hears nothing of it.
TEST_F(ToolStreams, ThatAreClosedEarlyEndTheToolQuietly) {
  const Outcome outcome = shell(folder, R"($heddle plan net.json --json | true
    echo ${PIPESTATUS[0]}; (sleep 0.2; $heddle plan net.json) | true; echo ${PIPESTATUS[0]}
    (sleep 0.2; $heddle plan net.json --quiet --svg -) | true; echo picture ${PIPESTATUS[0]})");
  EXPECT_EQ(outcome.err, "");
  EXPECT_NE(outcome.out.find("141\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("picture 141\n"), std::string::npos) << outcome.out;
}

}  // namespace
}  // namespace heddle::tool_tests
