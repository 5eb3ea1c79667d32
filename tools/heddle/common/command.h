// Code shared by all commands of the tool: common options, diagnostics, the one JSON object, exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heddle/session.h"
#include "heddle/status.h"

namespace heddle::tool {

using Json = nlohmann::ordered_json;

// Options that every command takes.
struct CommonOptions {
  std::vector<std::string> plugins;
  std::vector<std::string> plugin_folders;
  int threads = 0;
  bool json = false;
  bool quiet = false;
  bool no_progress = false;
  bool warnings_are_errors = false;
};

class Report;

// Runs after the command line has been parsed; returns the exit status.
using Run = std::function<int(Report&)>;

// One JSON object of a command: its keys besides those that every object has. docs/schemas/ describes their content; unknown is null, never
// absent.
struct Form {
  std::string name;  // the command; where it has several, with the subcommand or option that chooses: "plugin run", "plan --buffers"
  std::vector<const char*> keys;
};

struct Command {
  const char* name;
  const char* description;
  const char* example;
  Run (*declare)(CLI::App& app);  // declares its options on `app`
  std::vector<Form> forms;        // the plain one first, if there is one
};

// Collects the output of a command. Diagnostics go to stderr as they come (and into the object); text goes to stdout unless --json or
// --quiet; finish() prints the object and returns the exit status. All output to the terminal goes through it: whatever the text is made
// of, it is printable (base/text/text.h), in the object too. Names in texts of several lines must be quoted by the code that writes them,
// because line feeds are kept.
class Report {
 public:
  // Null: a command line that names no command.
  explicit Report(const Command* command) : command_(command) {}
  CommonOptions common;
  Json json = Json::object();  // the command's own keys

  // Must be called before the command does anything: sets every key of the object of `form` (null: none) to null. From here on an
  // interruption prints that object.
  void begin(const Form* form);
  // Prints it with everything attached to it. The library's hints name options; here they name flags.
  void diagnose(const Diagnostic& diagnostic);
  // Reports the status's diagnostic with everything attached to it; returns its exit status. A run that a signal ended was interrupted.
  int fail(const Status& status);
  // Returns 0, or fail(status).
  int finish_with(const Status& status) { return status.ok() ? 0 : fail(status); }
  // Prints a line on stdout for people.
  void say(const std::string& line) const;
  // Prints several lines.
  void say_lines(const std::string& text) const;
  // Prints text that was explicitly requested (--print, --dot): --quiet does not hide it.
  void print(const std::string& text) const;
  // Must be called before anything is printed, if an output of the command goes to standard output: text for people goes to stderr then.
  // Errors: invalid_argument (with --json, whose object goes there).
  Status give_up_standard_output();
  // Whether progress may be drawn: stderr is a terminal and no option forbids it.
  bool progress() const;
  void step(const std::string& text) const;
  int finish(int exit_code);

 private:
  void report_one(const Diagnostic& diagnostic);
  std::FILE* text_stream() const { return text_on_stderr_ ? stderr : stdout; }
  std::string object_text(int exit_code) const;

  const Command* command_;
  Json diagnostics_ = Json::array();
  bool warned_ = false, text_on_stderr_ = false;
};

// A runtime with the common options' plugins and threads.
Result<Runtime> make_runtime(const CommonOptions& common);
RuntimeOptions runtime_options(const CommonOptions& common);

// Validates an option: a whole number without a sign, of 64 bits as seeds are unless `most` is less. (CLI11 alone wraps -1 and clamps at
// the largest.)
CLI::Validator whole_number(uint64_t most = UINT64_MAX, uint64_t least = 0);
// Validates an option: a number that parse_float reads. (CLI11 takes an empty text for 0.)
CLI::Validator any_number();
// Validates an option: a file name. (An unset variable of the shell gives an empty one.)
CLI::Validator not_empty();
// Validates an option: a number from `least` to `most`; nan is refused.
CLI::Validator number_from(double least, double most);

// Returns "nan", "inf", "-inf" as strings, everything else as a number.
Json number(double value);

}  // namespace heddle::tool
