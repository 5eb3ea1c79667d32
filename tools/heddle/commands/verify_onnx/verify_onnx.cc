// heddle verify-onnx: ONNX backend test folders, one after the other in a child process. A folder that crashes the child, or takes too
// long, has failed; the next ones continue in a new child.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/text/text.h"
#include "commands/commands.h"
#include "commands/verify_onnx/onnx_folder.h"
#include "common/progress.h"
#include "options/device_options.h"
#include "options/limit_options.h"
#include "process/child_process.h"
#include "process/interrupt.h"
#include "process/scratch_folder.h"

namespace heddle::tool {
namespace {

namespace fs = std::filesystem;

struct VerifyArguments {
  std::vector<std::string> folders;
  Tolerances given;
  int timeout_s = 120;
  bool strict = false;
  LimitOptions limits;
  DeviceOptions devices;
};

Status collect(const fs::path& folder, std::vector<fs::path>& found) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return {Code::invalid_argument, fmt::format("{} is no folder", quoted(folder.string())),
            "name ONNX backend test folders or parents of such"};
  if (is_onnx_folder(folder)) {
    found.push_back(folder);
    return {};
  }
  std::vector<fs::path> inner;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory(error) && is_onnx_folder(entry.path())) inner.push_back(entry.path());
  std::sort(inner.begin(), inner.end());
  found.insert(found.end(), inner.begin(), inner.end());
  return {};
}

Json failed(std::string reason) {
  FolderVerdict verdict;
  verdict.status = "fail";
  verdict.reason = std::move(reason);
  return verdict.json();
}

// The text of a failure that the child sends.
std::string text_of(const Status& status) {
  const Diagnostic& d = status.diagnostic();
  return Json({{"code", static_cast<int>(d.code)}, {"message", d.message}, {"hint", d.hint}, {"option", d.option}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}
Status status_of(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  Hint hint(json.value("hint", ""));
  hint.option = json.value("option", "");
  return {static_cast<Code>(json.value("code", 0)), json.value("message", ""), std::move(hint)};
}

class FolderSuite {
 public:
  FolderSuite(const VerifyArguments& o, Report& report, SessionOptions options, std::vector<fs::path> folders)
      : o_(o),
        report_(report),
        options_(std::move(options)),
        folders_(std::move(folders)),
        progress_(report, "folder", static_cast<int64_t>(folders_.size())) {}
  int run();

 private:
  Result<ChildProcess> start() const;
  Status check_in_child(const ChildProcess::Clock::duration& timeout);
  void add(const Json& verdict);
  int end(const Status& status);

  const VerifyArguments& o_;
  Report& report_;
  const SessionOptions options_;
  std::vector<fs::path> folders_;
  size_t next_ = 0;  // the folder whose verdict is awaited
  Progress progress_;
  const ScratchFolder scratch_;
  std::map<std::string, int> totals_ = {{"pass", 0}, {"pass-statistical", 0}, {"fail", 0}, {"unsupported", 0}};
  Json table_ = Json::object();
};

// Starts a child that loads the plugins, sends an empty text (or why loading failed), and then one verdict after the other, from folder
// next_ on.
Result<ChildProcess> FolderSuite::start() const {
  return ChildProcess::start([this](const ChildProcess::Send& send) {
    const auto runtime = make_runtime(report_.common);
    send(runtime.ok() ? "" : text_of(runtime.status()));
    if (!runtime.ok()) return;
    for (size_t i = next_; i < folders_.size(); ++i)
      send(check_onnx_folder(folders_[i], o_.given, options_, *runtime, scratch_.path())
               .json()
               .dump(-1, ' ', false, Json::error_handler_t::replace));
  });
}

void FolderSuite::add(const Json& verdict) {
  const std::string status = verdict["status"], folder = folders_[next_++].string();
  ++totals_[status];
  table_[folder] = verdict;
  std::string line = fmt::format("{:16} {}", status, quoted(fs::path(folder).lexically_normal().filename().string()));
  const auto shown = [&](const char* label, const char* key) {
    const Json& value = verdict[key];
    if (value.is_null()) return;
    line += fmt::format("  {} {}", label, value.is_string() ? value.get<std::string>() : shortest(value.get<float>()));
  };
  shown("max abs", "max_abs_error");
  shown("rtol", "rtol");
  shown("atol", "atol");
  if (verdict["reason"].is_string()) line += fmt::format("  {}", verdict["reason"].get<std::string>());
  report_.say(line);
}

// Continues from next_ until a child ends or all folders are done. Errors: those that end the whole command.
Status FolderSuite::check_in_child(const ChildProcess::Clock::duration& timeout) {
  using Event = ChildProcess::Event;
  HEDDLE_TRY(ChildProcess child, start());
  std::string message;
  Event event = child.next(ChildProcess::Clock::now() + timeout, &message);
  if (event == Event::interrupted) return interruption();
  if (event == Event::ended) return {Code::plugin_invalid, fmt::format("while plugins were loaded, one of them {}", child.end_text())};
  if (event == Event::late) return {Code::plugin_invalid, "the plugins were not loaded within the --timeout"};
  if (!message.empty()) return status_of(message);
  while (next_ < folders_.size()) {
    progress_.reached(static_cast<int64_t>(next_), folders_[next_].filename().string());
    event = child.next(ChildProcess::Clock::now() + timeout, &message);
    if (event == Event::interrupted) return interruption();
    const Json verdict = event == Event::message ? Json::parse(message, nullptr, false) : Json();
    if (verdict.is_object())
      add(verdict);
    else if (event == Event::late)
      add(failed(fmt::format("did not finish in {} s; give it longer with --timeout SECONDS", o_.timeout_s)));
    else
      add(failed(event == Event::ended ? child.end_text() : "wrote into the tool's own pipe"));
    if (!verdict.is_object()) return {};
  }
  return {};
}

int FolderSuite::end(const Status& status) {
  report_.json["folders"] = table_;
  report_.json["totals"] = {{"pass", totals_["pass"]},
                            {"pass_statistical", totals_["pass-statistical"]},
                            {"fail", totals_["fail"]},
                            {"unsupported", totals_["unsupported"]}};
  const std::string left = next_ < folders_.size() ? fmt::format(", {} not done", folders_.size() - next_) : "";
  report_.say(fmt::format("{} pass, {} pass-statistical, {} fail, {} unsupported{}", totals_["pass"], totals_["pass-statistical"],
                          totals_["fail"], totals_["unsupported"], left));
  if (!status.ok()) return report_.fail(status);
  return totals_["fail"] > 0 || (o_.strict && totals_["unsupported"] > 0) ? 1 : 0;
}

int FolderSuite::run() {
  const InterruptibleRun interruptible(std::function<void()>{});
  Status status;
  while (status.ok() && next_ < folders_.size()) status = check_in_child(std::chrono::seconds(o_.timeout_s));
  if (!status.ok() && next_ == 0 && status.code() != Code::interrupted) return report_.fail(status);
  return end(status);
}

int run(const VerifyArguments& o, Report& report) {
  std::vector<fs::path> folders;
  for (const std::string& folder : o.folders) {
    const Status status = collect(folder, folders);
    if (!status.ok()) return report.fail(status);
  }
  if (folders.empty())
    return report.fail(
        Status(Code::invalid_argument, "no folder with a model.onnx was found", "name ONNX backend test folders or parents of such"));
  const auto limits = o.limits.limits();
  if (!limits.ok()) return report.fail(limits.status());
  SessionOptions options;
  options.limits = *limits;
  o.devices.apply(options);
  return FolderSuite(o, report, std::move(options), std::move(folders)).run();
}

Run declare_verify_onnx(CLI::App& app) {
  auto o = std::make_shared<VerifyArguments>();
  app.add_option("folders", o->folders, "ONNX backend test folders, or parents of such")->required()->type_name("DIR");
  app.add_option("--rtol", o->given.rtol, "relative tolerance (default: data.json beside the model, else 1e-3)")
      ->check(number_from(0, 1e300));
  app.add_option("--atol", o->given.atol,
                 "absolute tolerance (default: data.json beside the model, else 1e-5 of the largest expected value)")
      ->check(number_from(0, 1e300));
  app.add_option("--timeout", o->timeout_s, "seconds per folder (default 120)")->check(CLI::Range(1, 86400));
  app.add_flag("--strict", o->strict, "unsupported models fail too");
  o->limits.declare(app);
  o->devices.declare(app);
  return [o](Report& report) { return run(*o, report); };
}

}  // namespace

const Command verify_onnx_command = {"verify-onnx",
                                     "run ONNX backend test folders and compare",
                                     "heddle verify-onnx /usr/share/libonnx-testdata/data/pytorch-converted",
                                     declare_verify_onnx,
                                     {{"verify-onnx", {"folders", "totals"}}}};

}  // namespace heddle::tool
