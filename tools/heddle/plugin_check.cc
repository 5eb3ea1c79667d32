// heddle plugin check FILE.so: the author's suite. Each operator and each rewrite rule is examined in a child process, so that a crash is
// a verdict like any other.
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>

#include "base/text.h"
#include "operator_examination.h"
#include "plugin/registry.h"
#include "plugin_commands.h"
#include "rule_examination.h"
#include "run/session_impl.h"

namespace heddle::tool {
namespace {

struct Options {
  std::string file, only;
  uint64_t seed = 1;
  int timeout_s = 20;
  bool strict = false;
};

constexpr char end_of_verdict = '\n';

using Examination = std::function<Verdict()>;

// Runs the examination in a child and reads its verdict.
Verdict examine_in_child(const Examination& examine, int timeout_s) {
  const auto failed = [](std::string reason) { return Verdict{Verdict::Kind::fail, std::move(reason)}; };
  int pipe_ends[2];
  if (::pipe(pipe_ends) != 0) return failed("no pipe for the child process");
  std::fflush(nullptr);  // or a child that exits says it once more
  const pid_t child = ::fork();
  if (child < 0) return failed("no child process");
  if (child == 0) {
    // An interruption is the parent's to report; the child goes with it.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGALRM, SIGBUS}) std::signal(signal, SIG_DFL);
    ::close(pipe_ends[0]);
    const Verdict verdict = examine();
    const std::string text = static_cast<char>(verdict.kind) + verdict.reason + end_of_verdict;
    const ssize_t written = ::write(pipe_ends[1], text.data(), text.size());
    ::_exit(written >= 0 ? 0 : 1);
  }
  ::close(pipe_ends[1]);
  std::string text;
  char buffer[4096];
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(timeout_s);
  const auto left = [&] { return std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count(); };
  int status = 0;
  bool ended = false, late = false;
  // It may close its end of the pipe and go on.
  for (bool open = true; !ended && !late;) {
    pollfd wait_for = {open ? pipe_ends[0] : -1, POLLIN, 0};
    const int ready = ::poll(&wait_for, 1, static_cast<int>(std::clamp<int64_t>(left(), 0, open ? INT_MAX : 10)));
    if (ready > 0) {
      const ssize_t n = ::read(pipe_ends[0], buffer, sizeof(buffer));
      if (n > 0) text.append(buffer, static_cast<size_t>(n));
      if (n == 0 || (n < 0 && errno != EINTR)) open = false;
    }
    if (!open) ended = ::waitpid(child, &status, WNOHANG) == child;
    late = !ended && left() <= 0;
  }
  ::close(pipe_ends[0]);
  if (late) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  if (late) return failed("did not finish in " + std::to_string(timeout_s) + " s");
  if (WIFSIGNALED(status)) return failed(std::string("crashed: ") + ::strsignal(WTERMSIG(status)));
  if (text.size() < 2 || text.back() != end_of_verdict)
    return failed("ended the process with exit status " + std::to_string(WEXITSTATUS(status)) + " instead of returning");
  text.pop_back();
  return {static_cast<Verdict::Kind>(text[0]), text.substr(1)};
}

class Suite {
 public:
  Suite(const Options& o, Report& report) : o_(o), report_(report) {}
  int run();

 private:
  // `kind` is "operator" or "rule".
  void examine(const char* kind, const std::string& name, const std::string& again, const Examination& examination);

  const Options& o_;
  Report& report_;
  std::map<std::string, Json> verdicts_ = {{"operator", Json::array()}, {"rule", Json::array()}};
  int passed_ = 0, failed_ = 0, not_run_ = 0;
};

void Suite::examine(const char* kind, const std::string& name, const std::string& again, const Examination& examination) {
  if (!o_.only.empty() && o_.only != again) return;
  const auto [verdict, reason] = examine_in_child(examination, o_.timeout_s);
  const bool skipped = verdict == Verdict::Kind::not_run, bad = verdict == Verdict::Kind::fail;
  ++(bad ? failed_ : skipped ? not_run_ : passed_);
  verdicts_[kind].push_back({{kind, name},
                             {"status", bad       ? "fail"
                                        : skipped ? "not-run"
                                                  : "pass"},
                             {"reason", reason.empty() ? Json(nullptr) : Json(reason)}});
  report_.say((bad ? "FAIL " : skipped ? "not run " : "ok   ") + word(name) + (reason.empty() ? "" : "  " + quoted(reason)));
  if (bad)
    report_.say("     again: heddle plugin check " + word(o_.file) + " --operator " + word(again) + " --seed " + std::to_string(o_.seed));
}

int Suite::run() {
  CommonOptions common = report_.common;
  common.threads = 1;  // a child of fork has one thread
  const auto runtime = make_runtime(common);
  if (!runtime.ok()) return report_.fail(runtime.status());
  Registry& registry = runtime->impl().registry;
  const Status loaded = registry.load(o_.file);
  if (!loaded.ok()) return report_.fail(loaded);
  const auto snapshot = registry.snapshot();
  std::error_code error;
  const auto path = std::filesystem::canonical(o_.file, error);
  for (const auto& plugin : snapshot->plugins()) {
    if (plugin->library->path() != path) continue;
    for (const OperatorSchema& schema : plugin->operators)
      examine("operator", display_name(schema.domain, schema.name), schema.name,
              [&] { return examine_operator(*snapshot, schema, o_.seed); });
    const heddle_plugin& table = plugin->library->plugin();
    for (uint32_t i = 0; i < table.rule_count; ++i)
      examine("rule", table.rules[i]->name, table.rules[i]->name, [&] { return examine_rule(*runtime, *table.rules[i], o_.seed); });
  }
  report_.json["operators"] = verdicts_["operator"];
  report_.json["rules"] = verdicts_["rule"];
  report_.json["totals"] = {{"pass", passed_}, {"fail", failed_}, {"not_run", not_run_}};
  const bool rules = !verdicts_["rule"].empty();
  const int examined = passed_ + failed_ + not_run_;
  report_.say(std::to_string(passed_) + " of " + std::to_string(examined) + (rules ? " operators and rules" : " operators") + " passed" +
              (not_run_ > 0 ? ", " + std::to_string(not_run_) + " not run" : ""));
  if (examined == 0)
    return report_.fail(Status(Code::unknown_name, "nothing to check in " + quoted(o_.file), "see heddle inspect " + word(o_.file)));
  return failed_ > 0 || (o_.strict && not_run_ > 0) ? 1 : 0;
}

}  // namespace

Run declare_plugin_check(CLI::App& app) {
  auto o = std::make_shared<Options>();
  app.add_option("file", o->file, "the plugin")->required()->type_name("FILE.so");
  app.add_option("--operator", o->only, "this operator or rule alone")->type_name("NAME");
  app.add_option("--seed", o->seed, "of the random inputs")->check(whole_number());
  app.add_option("--timeout", o->timeout_s, "seconds per operator")->check(CLI::Range(1, 3600));
  app.add_flag("--strict", o->strict, "1 also when something could not be run");
  return [o](Report& report) { return Suite(*o, report).run(); };
}

}  // namespace heddle::tool
