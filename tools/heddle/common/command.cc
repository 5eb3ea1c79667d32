#include "common/command.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "base/text/text.h"
#include "common/standard_streams.h"
#include "options/option_flags.h"
#include "process/interrupt.h"

namespace heddle::tool {
namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

// Colours on a terminal, unless NO_COLOR (no-color.org) is set.
bool colours() {
  const char* no = std::getenv("NO_COLOR");
  return ::isatty(STDERR_FILENO) != 0 && !(no && *no);
}

Json diagnostic_json(const Diagnostic& d) {
  std::string message = d.message;
  for (const std::string& c : d.context) message += fmt::format(", {}", c);
  return {{"severity", to_string(d.severity)}, {"code", to_string(d.code)},    {"net", text_or_null(d.net)},
          {"operator", text_or_null(d.node)},  {"type", text_or_null(d.type)}, {"message", message},
          {"hint", text_or_null(d.hint)}};
}

// Whether the other end of a pipe is closed.
bool is_reader_gone(int fd) {
  pollfd pipe = {fd, POLLOUT, 0};
  return ::poll(&pipe, 1, 0) > 0 && (pipe.revents & POLLERR) != 0;
}

// JSON text must be UTF-8 whatever the file's names are.
constexpr int broken_pipe = 128 + SIGPIPE;  // the exit status of programs that it ends
constexpr auto replace_invalid = nlohmann::json::error_handler_t::replace;

}  // namespace

void Report::begin(const Form* form) {
  json = Json::object();
  if (form)
    for (const char* key : form->keys) json[key] = nullptr;
  if (!common.json) return;
  for (const SuddenEnd end : sudden_ends) {
    Report other(*this);
    other.diagnostics_.push_back(diagnostic_json(reason(end).diagnostic()));
    set_sudden_output(end, other.object_text(tool::exit_code(end)));
  }
}

void Report::diagnose(const Diagnostic& diagnostic) {
  report_one(with_flags(diagnostic));
}

// Reports one diagnostic, whose hint names flags, and those attached to it.
void Report::report_one(const Diagnostic& d) {
  if (d.severity == Severity::warning) warned_ = true;
  diagnostics_.push_back(diagnostic_json(d));
  Diagnostic alone = d;
  alone.attached.clear();
  std::string line = alone.text();
  if (colours()) line.insert(line.find(']') + 1, "\033[0m").insert(0, d.severity == Severity::error ? "\033[1;31m" : "\033[1;33m");
  if (d.severity == Severity::error || !common.quiet) std::fprintf(stderr, "%s%s\n", progress() ? "\r\033[K" : "", line.c_str());
  for (const Diagnostic& other : d.attached) report_one(other);
}

int Report::fail(const Status& status) {
  const bool by_signal = interrupting_signal() != 0 && (status.code() == Code::cancelled || status.code() == Code::interrupted);
  if (!by_signal) {
    diagnose(status.diagnostic());
    return exit_status(status.code());
  }
  diagnose(interruption().diagnostic());
  return 128 + interrupting_signal();
}

void Report::say(const std::string& line) const {
  if (common.json || common.quiet) return;
  step("");  // removes progress text from the line
  std::fprintf(text_stream(), "%s\n", printable_line(line).c_str());
}

void Report::say_lines(const std::string& text) const {
  if (!common.json && !common.quiet) std::fprintf(text_stream(), "%s\n", printable(text).c_str());
}

void Report::print(const std::string& text) const {
  if (!common.json) std::fprintf(text_stream(), "%s\n", printable(text).c_str());
}

Status Report::give_up_standard_output() {
  if (common.json)
    return {Code::invalid_argument, "an output goes to standard output, and so does the object of --json", "name a file for one of them"};
  text_on_stderr_ = true;
  return {};
}

bool Report::progress() const {
  return !common.quiet && !common.no_progress && ::isatty(STDERR_FILENO) != 0;
}

void Report::step(const std::string& text) const {
  if (progress()) std::fprintf(stderr, "\r\033[K%s", printable_line(text).c_str());
}

std::string Report::object_text(int exit_code) const {
  Json object = {{"schema_version", 1},
                 {"command", command_ ? command_->name : ""},
                 {"status", exit_code == 0 ? "ok" : "failed"},
                 {"exit_code", exit_code},
                 {"diagnostics", diagnostics_}};
  for (const auto& [key, value] : json.items()) object[key] = value;
  // Controls and marks of direction that JSON allows unescaped are escaped: the same object, safe on a terminal too.
  return printable(object.dump(2, ' ', false, replace_invalid)) + "\n";
}

int Report::finish(int exit_code) {
  if (progress()) std::fprintf(stderr, "\r\033[K");
  // A signal that came after the run had finished: everything else has been done, and the caller gets its exit status.
  if (interrupting_signal() != 0 && exit_code != 128 + interrupting_signal()) exit_code = fail(interruption());
  if (exit_code == 0 && warned_ && common.warnings_are_errors) exit_code = 1;
  if (common.json) {
    for (const SuddenEnd end : sudden_ends) set_sudden_output(end, "");  // one object, not two
    std::fputs(object_text(exit_code).c_str(), stdout);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    if (is_reader_gone(STDOUT_FILENO)) return exit_code == 0 ? broken_pipe : exit_code;  // as `head` does: no fault of anybody
    std::fputs("error[file-unwritable]: the output could not be written; make room, or keep the reader alive\n", stderr);
    return exit_code == 0 ? 1 : exit_code;
  }
  return exit_code == 0 && has_lost_reader() ? broken_pipe : exit_code;
}

RuntimeOptions runtime_options(const CommonOptions& common) {
  RuntimeOptions options;
  options.plugins = common.plugins;
  options.plugin_folders = common.plugin_folders;
  options.threads = common.threads;
  options.pin_threads = true;
  return options;
}

Result<Runtime> make_runtime(const CommonOptions& common) {
  return Runtime::create(runtime_options(common));
}

CLI::Validator whole_number(uint64_t most, uint64_t least) {
  const auto check = [=](const std::string& text) -> std::string {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return {};
    return fmt::format("{} is no whole number from {} to {}", quoted(text), least, most);
  };
  return CLI::Validator(check, "", "whole number");
}

CLI::Validator not_empty() {
  return CLI::Validator([](const std::string& text) { return text.empty() ? std::string("it is empty") : std::string(); }, "", "not empty");
}

CLI::Validator any_number() {
  const auto check = [](const std::string& text) -> std::string {
    double value = 0;
    return parse_float(text, &value) ? std::string() : fmt::format("{} is no number", quoted(text));
  };
  return CLI::Validator(check, "", "number");
}

CLI::Validator number_from(double least, double most) {
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    if (parse_float(text, &value) && value >= least && value <= most) return {};
    return fmt::format("{} is no number from {} to {}", quoted(text), shortest(least), shortest(most));
  };
  return CLI::Validator(check, "", "number");
}

Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

}  // namespace heddle::tool
