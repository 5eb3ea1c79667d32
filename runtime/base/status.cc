#include "heddle/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/text/text.h"

namespace heddle {
namespace {

struct CodeInfo {
  const char* name;
  int exit_status;
};

// In the order of Code. Exit status: 1 the run, check or comparison failed; 2 wrong use; 3 files, operators, plugins; 4 limits.
constexpr CodeInfo codes[] = {
    {"ok", 0},
    {"invalid-argument", 2},
    {"missing-input", 2},
    {"unknown-option", 2},
    {"unknown-name", 2},
    {"busy", 1},
    {"file-not-found", 3},
    {"file-unreadable", 3},
    {"file-unwritable", 3},
    {"file-truncated", 3},
    {"file-corrupt", 3},
    {"file-version", 3},
    {"weights-missing", 3},
    {"weights-mismatch", 3},
    {"weights-outside", 3},
    {"syntax", 3},
    {"duplicate-name", 3},
    {"dangling-input", 3},
    {"cycle", 3},
    {"unknown-operator", 3},
    {"arity-mismatch", 3},
    {"unknown-attribute", 3},
    {"attribute-mismatch", 3},
    {"dtype-mismatch", 3},
    {"shape-mismatch", 3},
    {"unbound-symbol", 2},
    {"no-kernel", 3},
    {"wrong-device", 3},
    {"no-such-device", 1},
    {"hazard", 3},
    {"subnet-mismatch", 3},
    {"unused-operator", 0},
    {"unsupported", 3},
    {"plugin-unreadable", 3},
    {"plugin-abi", 3},
    {"plugin-invalid", 3},
    {"duplicate-registration", 3},
    {"missing-resource", 3},
    {"limit-exceeded", 4},
    {"out-of-memory", 4},
    {"kernel-failed", 1},
    {"numerics", 1},
    {"comparison-failed", 1},
    {"cancelled", 1},
    {"deadline-exceeded", 1},
    {"device-failed", 1},
    {"device-lost", 1},
    {"forked", 1},
    {"interrupted", 130},
    {"not-implemented", 2},
    {"internal", 1},
};
static_assert(sizeof(codes) / sizeof(codes[0]) == static_cast<size_t>(Code::internal) + 1);

}  // namespace

const char* to_string(Code code) {
  return codes[static_cast<size_t>(code)].name;
}
int exit_status(Code code) {
  return codes[static_cast<size_t>(code)].exit_status;
}
const char* to_string(Severity severity) {
  return severity == Severity::error ? "error" : severity == Severity::warning ? "warning" : "note";
}

// Nothing can be returned or thrown from here, so the program ends with the error as its last message. Standard output is flushed first,
// because abort() flushes no buffer.
void detail::no_value(const Diagnostic* error) noexcept {
  std::fflush(stdout);
  const std::string text = error ? error->text() : "nothing is known of why: its status is ok, or was taken out of it";
  std::fprintf(stderr, "the value of a failed heddle::Result was used without asking ok(): %s\n", text.c_str());
  std::abort();
}

void detail::no_diagnostic() noexcept {
  std::fflush(stdout);
  std::fputs("the diagnostic of a heddle::Status that is ok was used without asking ok()\n", stderr);
  std::abort();
}

// If there is no memory for the text, returns the code alone, as much of it as a string holds without allocating.
std::string Diagnostic::text() const try {
  std::string out = fmt::format("{}[{}]", to_string(severity), to_string(code));
  if (!net.empty()) out += fmt::format(" {}{}", quoted(net), node.empty() ? "" : ":");
  if (!node.empty()) out += type.empty() ? fmt::format(" {}", quoted(node)) : fmt::format(" {} ({})", quoted(node), word(type));
  out += fmt::format(": {}", message);
  for (const std::string& c : context) out += fmt::format(", {}", c);
  if (!hint.empty()) out += fmt::format("; {}", hint);
  if (!attached.empty()) out += fmt::format(" (and {} more of the same run)", attached.size());
  return printable_line(out);
} catch (...) {
  return {to_string(code), std::min(std::strlen(to_string(code)), std::string().capacity())};
}

}  // namespace heddle
