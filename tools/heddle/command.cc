#include "command.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace heddle::tool {
namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

// JSON text must be UTF-8 whatever the file's names are.
constexpr auto replace_invalid = nlohmann::json::error_handler_t::replace;

}  // namespace

void Report::diagnose(const Diagnostic& d) {
  if (d.severity == Severity::warning) warned_ = true;
  std::string message = d.message;
  for (const std::string& c : d.context) message += ", " + c;
  diagnostics_.push_back({{"severity", to_string(d.severity)},
                          {"code", to_string(d.code)},
                          {"net", text_or_null(d.net)},
                          {"operator", text_or_null(d.node)},
                          {"type", text_or_null(d.type)},
                          {"message", message},
                          {"hint", text_or_null(d.hint)}});
  if (d.severity == Severity::note && common.quiet) return;
  Diagnostic alone = d;
  alone.attached.clear();
  std::fprintf(stderr, "%s\n", alone.text().c_str());
  for (const Diagnostic& other : d.attached) diagnose(other);
}

int Report::fail(const Status& status) {
  diagnose(status.diagnostic());
  return exit_status(status.code());
}

void Report::say(const std::string& line) const {
  if (!common.json && !common.quiet) std::printf("%s\n", line.c_str());
}

bool Report::progress() const {
  return !common.quiet && !common.no_progress && ::isatty(STDERR_FILENO) != 0;
}

void Report::step(const std::string& text) const {
  if (progress()) std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

int Report::finish(int exit_code) {
  if (progress()) std::fprintf(stderr, "\r\033[K");
  if (exit_code == 0 && warned_ && common.warnings_are_errors) exit_code = 1;
  if (common.json) {
    Json object = {{"schema_version", 1},
                   {"command", command_},
                   {"status", exit_code == 0 ? "ok" : "failed"},
                   {"exit_code", exit_code},
                   {"diagnostics", diagnostics_}};
    for (auto& [key, value] : json.items()) object[key] = value;
    std::printf("%s\n", object.dump(2, ' ', false, replace_invalid).c_str());
  }
  std::fflush(stdout);
  return exit_code;
}

Result<Runtime> make_runtime(const CommonOptions& common) {
  RuntimeOptions options;
  options.plugins = common.plugins;
  options.plugin_folders = common.plugin_folders;
  options.threads = common.threads;
  options.pin_threads = true;
  return Runtime::create(options);
}

Json number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

}  // namespace heddle::tool
