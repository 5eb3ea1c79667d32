// heddle plugin check FILE.so: the author's suite. Each operator is examined in a child process, so that a crash is a verdict like any
// other.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/text.h"
#include "operator_examination.h"
#include "plugin/registry.h"
#include "plugin_commands.h"
#include "run/session_impl.h"

namespace heddle::tool {
namespace {

struct Options {
  std::string file, only;
  uint64_t seed = 1;
  int timeout_s = 20;
};

// Runs the examination in a child and reads its text; empty: passed.
std::string examine_in_child(const RegistrySnapshot& registry, const OperatorSchema& schema, const Options& o) {
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return "no pipe for the child process";
  const pid_t child = ::fork();
  if (child < 0) return "no child process";
  if (child == 0) {
    // An interruption is the parent's to report; the child goes with it.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
    ::close(pipe_ends[0]);
    const std::string verdict = examine_operator(registry, schema, o.seed);
    ssize_t written = ::write(pipe_ends[1], verdict.data(), verdict.size());
    ::_exit(written >= 0 ? 0 : 1);
  }
  ::close(pipe_ends[1]);
  std::string text;
  char buffer[4096];
  pollfd wait_for = {pipe_ends[0], POLLIN, 0};
  bool late = false;
  for (;;) {
    const int ready = ::poll(&wait_for, 1, o.timeout_s * 1000);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      late = true;
      ::kill(child, SIGKILL);
      break;
    }
    const ssize_t n = ::read(pipe_ends[0], buffer, sizeof(buffer));
    if (n <= 0) break;
    text.append(buffer, static_cast<size_t>(n));
  }
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (late) return "did not finish in " + std::to_string(o.timeout_s) + " s";
  if (WIFSIGNALED(status)) return std::string("crashed: ") + ::strsignal(WTERMSIG(status)) + (text.empty() ? "" : " behind: " + text);
  return text;
}

int check(const Options& o, Report& report) {
  CommonOptions common = report.common;
  common.threads = 1;  // a child of fork has one thread
  const auto runtime = make_runtime(common);
  if (!runtime.ok()) return report.fail(runtime.status());
  Registry& registry = runtime->impl().registry;
  const Status loaded = registry.load(o.file);
  if (!loaded.ok()) return report.fail(loaded);
  const auto snapshot = registry.snapshot();
  std::error_code error;
  const auto path = std::filesystem::canonical(o.file, error);
  Json verdicts = Json::array();
  int failed = 0, examined = 0;
  for (const auto& plugin : snapshot->plugins()) {
    if (plugin->library->path() != path) continue;
    for (const OperatorSchema& schema : plugin->operators) {
      if (!o.only.empty() && schema.name != o.only) continue;
      ++examined;
      const std::string name = display_name(schema.domain, schema.name);
      const std::string verdict = examine_in_child(*snapshot, schema, o);
      const bool note = verdict.starts_with("note: ");
      const bool bad = !verdict.empty() && !note;
      failed += bad;
      verdicts.push_back(
          {{"operator", name}, {"status", bad ? "fail" : "pass"}, {"reason", verdict.empty() ? Json(nullptr) : Json(verdict)}});
      report.say((bad ? "FAIL " : "ok   ") + name + (verdict.empty() ? "" : "  " + quoted(verdict)));
      if (bad) report.say("     again: heddle plugin check " + o.file + " --operator " + schema.name + " --seed " + std::to_string(o.seed));
    }
  }
  report.json["operators"] = verdicts;
  report.say(std::to_string(examined - failed) + " of " + std::to_string(examined) + " operators passed");
  if (examined == 0)
    return report.fail(Status(Code::unknown_name, "nothing to check in " + quoted(o.file), "see heddle inspect " + o.file));
  return failed > 0 ? 1 : 0;
}

}  // namespace

Run declare_plugin_check(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("file", o->file, "the plugin")->required()->type_name("FILE.so");
  app.add_option("--operator", o->only, "this operator alone")->type_name("NAME");
  app.add_option("--seed", o->seed, "of the random inputs");
  app.add_option("--timeout", o->timeout_s, "seconds per operator")->check(CLI::Range(1, 3600));
  return [o](Report& report) { return check(*o, report); };
}

}  // namespace heddle::tool
