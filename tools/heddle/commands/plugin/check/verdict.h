// The results of an examination by `heddle plugin check`.
#pragma once

#include <string>
#include <utility>

namespace heddle::tool {

// A mistake, by name and as a sentence; ok: none.
struct Finding {
  // One of the names that docs/command_line.md lists under `plugin check`: "read-beyond", "unwritten", ...
  const char* mistake = "";
  std::string text;

  bool ok() const { return text.empty(); }
  // Adds the inputs that show it.
  Finding with(const std::string& about) && { return {mistake, ok() ? std::string() : text + about}; }
};

// A property that a kernel may have, and that its author should know. `name`: from the table in docs/command_line.md, a mistake's or a
// note's own (no-abort).
struct Note {
  std::string name, text;
};

struct Verdict {
  enum class Kind : char { pass, fail, not_run };
  Kind kind = Kind::pass;
  std::string mistake;  // its name
  std::string reason;   // why it did not pass

  static Verdict of(Finding found) {
    return {found.ok() ? Kind::pass : Kind::fail, found.ok() ? "" : found.mistake, std::move(found.text)};
  }
};

}  // namespace heddle::tool
