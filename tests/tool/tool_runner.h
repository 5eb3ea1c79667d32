// Runs the built `heddle` as a child process and reads its output.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "json_schema.h"
#include "load/temporary_folder.h"

namespace heddle::tool_tests {

using testing::read_text;
using testing::TemporaryFolder;
using testing::write_text;

inline const std::filesystem::path onnx_data = "/usr/share/libonnx-testdata/data";
using Words = std::vector<std::string>;

inline const std::string tool_path = HEDDLE_BINARY_DIR "/bin/heddle";
inline const std::string cpu_plugin = HEDDLE_BINARY_DIR "/lib/cpu.so";
inline const std::string image_plugin = HEDDLE_BINARY_DIR "/lib/image.so";
inline const std::string example_plugin = HEDDLE_BINARY_DIR "/lib/example.so";
// Names of the plugins that come with Heddle, in the order in which they are loaded, each followed by a space.
#ifdef HEDDLE_WITH_CUDA
inline const std::string bundled_plugins = "cpu cuda gloo image nccl sim ";
#else
inline const std::string bundled_plugins = "cpu gloo image nccl sim ";
#endif
inline std::string test_plugin(const std::string& name) {
  return HEDDLE_BINARY_DIR "/lib/test/" + name + ".so";
}

// For tests whose tool writes to a terminal: they are skipped where none can be made, as in a root without /dev/pts.
#define HEDDLE_NEEDS_TERMINAL()                                                                               \
  if (int ends[2]; ::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr) != 0)                             \
    GTEST_SKIP() << "no terminal can be made here: " << std::strerror(errno) << "; mount devpts at /dev/pts"; \
  else                                                                                                        \
    ::close(ends[0]), ::close(ends[1])

struct Outcome {
  int status = -1;  // the tool's exit status; 1000 + signal when a signal ended it
  std::string out, err;
};

// The longest time that a run may take.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::minutes longest_run{20};
#else
inline constexpr std::chrono::minutes longest_run{5};
#endif

// One run of the tool: its environment, and the signals sent to it meanwhile.
class Tool {
 public:
  explicit Tool(Words arguments) : arguments_(std::move(arguments)) {}
  Tool& set(const std::string& name, const std::string& value) { return environment_[name] = value, *this; }
  Tool& in(const std::filesystem::path& folder) { return folder_ = folder.string(), *this; }
  // Makes stderr a terminal.
  Tool& on_terminal() { return terminal_ = true, *this; }
  Tool& on_one_processor() { return one_processor_ = true, *this; }
  Tool& within_memory(rlim_t bytes) { return memory_ = bytes, *this; }
  // `when` is called every millisecond with the text on stderr so far, until it returns true; then the signal is sent.
  Tool& interrupt(int signal, std::function<bool(const std::string& err, pid_t tool)> when) {
    signal_ = signal;
    when_ = std::move(when);
    return *this;
  }

  Outcome run() {
    start();
    if (child_ < 0) return {};
    const auto begin = std::chrono::steady_clock::now();
    pollfd sources[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};
    while (sources[0].fd >= 0 || sources[1].fd >= 0) {
      ::poll(sources, 2, when_ ? 1 : 1000);
      read_into(sources[0], outcome_.out);
      read_into(sources[1], outcome_.err);
      if (when_ && when_(outcome_.err, child_)) {
        ::kill(child_, signal_);
        when_ = nullptr;
      }
      if (std::chrono::steady_clock::now() - begin > longest_run) {
        ADD_FAILURE() << "the tool did not end in " << longest_run.count() << " minutes";
        ::kill(child_, SIGKILL);
        break;
      }
    }
    int status = 0;
    ::waitpid(child_, &status, 0);
    outcome_.status = WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
    ::close(out_);
    ::close(err_);
    return outcome_;
  }

 private:
  void start() {
    int out[2], err[2];
    ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
    if (terminal_)
      ASSERT_EQ(::openpty(&err[0], &err[1], nullptr, nullptr, nullptr), 0);
    else
      ASSERT_EQ(::pipe2(err, O_CLOEXEC), 0);
    std::vector<char*> words = {const_cast<char*>(tool_path.c_str())};
    for (std::string& word : arguments_) words.push_back(word.data());
    words.push_back(nullptr);
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(out[1], STDOUT_FILENO);
      ::dup2(err[1], STDERR_FILENO);
      if (!folder_.empty() && ::chdir(folder_.c_str()) != 0) ::_exit(98);
      for (const char* name : {"HEDDLE_PLUGIN_DIR", "NO_COLOR", "HEDDLE_CPU_ISA"}) ::unsetenv(name);
      for (const auto& [name, value] : environment_) ::setenv(name.c_str(), value.c_str(), 1);
      if (one_processor_) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<size_t>(::sched_getcpu()), &set);
        ::sched_setaffinity(0, sizeof(set), &set);
      }
      if (memory_ > 0) {
        const rlimit limit = {memory_, memory_};
        ::setrlimit(RLIMIT_AS, &limit);
      }
      ::execv(words[0], words.data());
      ::_exit(99);
    }
    ::close(out[1]);
    ::close(err[1]);
    out_ = out[0];
    err_ = err[0];
  }

  static void read_into(pollfd& source, std::string& text) {
    if (source.fd < 0 || source.revents == 0) return;
    char buffer[65536];
    const ssize_t n = ::read(source.fd, buffer, sizeof(buffer));
    if (n > 0)
      text.append(buffer, static_cast<size_t>(n));
    else
      source.fd = -1;  // the end; for a terminal also EIO
  }

  Words arguments_;
  std::map<std::string, std::string> environment_;
  std::string folder_;
  bool terminal_ = false, one_processor_ = false;
  rlim_t memory_ = 0;
  int signal_ = 0;
  std::function<bool(const std::string&, pid_t)> when_;
  pid_t child_ = -1;
  int out_ = -1, err_ = -1;
  Outcome outcome_;
};

inline Outcome heddle(Words arguments) {
  return Tool(std::move(arguments)).run();
}

// Returns the schema that describes the object of these arguments.
inline std::string schema_of(const Words& arguments) {
  if (arguments.empty()) return "common.json";
  std::string name = arguments[0];
  if (name == "plugin" && arguments.size() > 1) name += "_" + arguments[1];
  if (name == "plan" && std::find(arguments.begin(), arguments.end(), "--buffers") != arguments.end()) name += "_buffers";
  std::replace(name.begin(), name.end(), '-', '_');
  return name + ".json";
}

// Parses exactly one object, checks it against its schema of docs/schemas/, and compares it with the exit status.
inline Json checked_object(const Outcome& outcome, const std::string& schema) {
  const Json object = Json::parse(outcome.out, nullptr, false);
  EXPECT_TRUE(object.is_object()) << "stdout is not one JSON object: " << outcome.out.substr(0, 500) << outcome.err;
  if (!object.is_object()) return Json::object();
  for (const std::string& name : {std::string("common.json"), schema}) {
    const Json rules = schema_file(name);
    EXPECT_TRUE(rules.is_object()) << "docs/schemas/" << name << " can't be read";
    if (!rules.is_object()) continue;
    for (const std::string& wrong : SchemaCheck::run(object, rules)) ADD_FAILURE() << name << " " << wrong;
  }
  EXPECT_EQ(object.value("exit_code", -1), outcome.status);
  return object;
}

// Runs with --json and expects this exit status; the object is checked against its schema.
inline Json heddle_json(Words arguments, int status = 0) {
  const std::string schema = schema_of(arguments);
  arguments.push_back("--json");
  const Outcome outcome = heddle(arguments);
  EXPECT_EQ(outcome.status, status) << outcome.err;
  return checked_object(outcome, schema);
}

// Returns the codes of the object's diagnostics, in order.
inline Words codes(const Json& object) {
  Words list;
  for (const Json& d : object.value("diagnostics", Json::array())) list.push_back(d.value("code", ""));
  return list;
}

// ---------------------------------------------------------------- nets

inline std::string net_text(const std::string& name, const std::string& inputs, const std::string& outputs, const std::string& values,
                            const std::string& nodes, const std::string& rest = "") {
  return R"({"heddle": 1, "name": ")" + name + R"(", "operator_sets": [{"domain": "", "version": 17}], "inputs": [)" + inputs +
         R"(], "outputs": [)" + outputs + R"(], "values": [)" + values + R"(], "nodes": [)" + nodes + "]" + rest + "}";
}
inline std::string input(const std::string& name, const std::string& dims, const std::string& dtype = "f32") {
  return R"({"name": ")" + name + R"(", "kind": "input", "dtype": ")" + dtype + R"(", "dims": [)" + dims + "]}";
}
inline std::string node(const std::string& type, const std::string& inputs, const std::string& output, const std::string& rest = "") {
  return R"({"name": ")" + output + R"(", "type": ")" + type + R"(", "inputs": [)" + inputs + R"(], "outputs": [")" + output + "\"]" +
         rest + "}";
}

// x [2, 3] -> a = Relu(x), b = Exp(a); both are outputs.
inline std::string two_outputs() {
  return net_text("two", R"("x")", R"("a", "b")", input("x", "2, 3"), node("Relu", R"("x")", "a") + ", " + node("Exp", R"("a")", "b"));
}
// x ["N", 3] -> y = Relu(x)
inline std::string symbolic() {
  return net_text("symbolic", R"("x")", R"("y")", input("x", R"("N", 3)"), node("Relu", R"("x")", "y"));
}

// Returns an .npy as NumPy writes it: of a type such as "<i8" and a shape such as "8," or "2, 3".
inline std::string npy_of(const std::string& type, const std::string& shape, const void* data, size_t bytes) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.resize((10 + header.size() + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() % 256);
  text += static_cast<char>(header.size() / 256);
  return (text + header).append(static_cast<const char*>(data), bytes);
}
// Returns f32 numbers as .npy.
inline std::string npy(const std::string& shape, const std::vector<float>& values) {
  return npy_of("<f4", shape, values.data(), 4 * values.size());
}
// Returns the elements of an .npy of f32.
inline std::vector<float> npy_values(const std::filesystem::path& file) {
  const std::string text = read_text(file);
  const size_t begin = text.find('\n') + 1;
  std::vector<float> values((text.size() - begin) / 4);
  std::memcpy(values.data(), text.data() + begin, 4 * values.size());
  return values;
}

// x [512, 512] and a chain of products of it: some hundred milliseconds at least on any machine.
inline std::string slow_net(int products) {
  std::string nodes = node("MatMul", R"("x", "x")", "p0"), last = "p0";
  for (int i = 1; i < products; ++i) {
    const std::string name = "p" + std::to_string(i);
    nodes += ", " + node("MatMul", "\"" + last + R"(", "x")", name);
    last = name;
  }
  return net_text("slow", R"("x")", "\"" + last + "\"", input("x", "512, 512"), nodes);
}

inline size_t files_in(const std::filesystem::path& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
}

// Returns 300 buffers for `plan --buffers` that no search packs to the lower bound at once.
inline std::string hard_buffers() {
  std::string table = "id,lower,upper,size\n";
  for (int i = 0; i < 300; ++i)
    table += "b" + std::to_string(i) + "," + std::to_string(i * 7 % 50) + "," + std::to_string(i * 7 % 50 + 5 + i % 13) + "," +
             std::to_string(1000 + i * 37 % 911) + "\n";
  return table;
}

// A folder with one net in it.
struct NetFolder : TemporaryFolder {
  explicit NetFolder(const std::string& text) { write_text(*this / "net.json", text); }
  std::string net() const { return (path() / "net.json").string(); }
  std::string file(const std::string& name) const { return (path() / name).string(); }
};

}  // namespace heddle::tool_tests
