// Text that people read: escaping of untrusted names, joining, nearest names, numbers that round-trip.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/shared_text.h"

namespace heddle {

// Escape the characters that must not reach a terminal, a page or a log: hidden code points (controls, C1 controls, marks of direction,
// invisible and ignorable ones, line separators) and bytes that are not UTF-8. Those are written as \uXXXX, as in JSON; a byte that is not
// UTF-8 as \udcXX. Everything that the tool prints and every diagnostic and log line goes through these.
//   printable: may have several lines, so line feeds stay; JSON text stays JSON of the same value.
//   printable_line: one line, line feeds are escaped too.
std::string printable(std::string_view text);
std::string printable_line(std::string_view text);
// Makes a file name from any text: no '/', '\\', ':', no characters that shells interpret, nothing that is not printable; does not begin
// with '.', '-' or '~'; not empty; at most 200 bytes. Different texts may give the same name.
std::string file_name_of(std::string_view text);
// `text` as a JSON string with its quotes; what printable escapes is escaped here too.
std::string quoted(std::string_view text);
// Exact overloads: argument-dependent lookup would otherwise prefer std::quoted.
inline std::string quoted(const std::string& text) {
  return quoted(std::string_view(text));
}
inline std::string quoted(std::string& text) {
  return quoted(std::string_view(text));
}
inline std::string quoted(const char* text) {
  return quoted(std::string_view(text));
}
inline std::string quoted(const SharedText& text) {
  return quoted(std::string_view(text));
}
// Returns `text` unchanged when it is a plain word (letters, digits and _.:/+-), else quoted: types and devices, which files name too.
std::string word(std::string_view text);
// Return several texts, each as word() and quoted() write it.
std::string words(const std::vector<std::string>& texts, std::string_view separator);
std::string all_quoted(const std::vector<std::string>& texts, std::string_view separator = ", ");
// True if `text` is well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// Returns up to `limit` of `candidates` closest to `name` by edit distance (at most a third of its length away), best first.
std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates, size_t limit = 3);
// Returns "did you mean \"a\" or \"b\"?" or an empty text.
std::string suggestion(std::string_view name, const std::vector<std::string>& candidates);
// Returns the shortest decimal that reads back as the same double; "inf", "-inf" and "nan" as text.
std::string shortest(double value);
std::string shortest(float value);
// Returns 16 hexadecimal digits, as checksums are written.
std::string hex(uint64_t value);
// Parses exactly 16 hexadecimal digits; false when `text` is something else.
bool parse_hex(std::string_view text, uint64_t* value);
// Returns "1 step", or "2 steps".
std::string counted(int64_t count, std::string_view what);
// Returns a size such as "1.5 MiB".
std::string human_bytes(int64_t bytes);
// Parses "512MiB", "2GB", "64k" or a number of bytes; false when it is none or does not fit.
bool parse_size(std::string_view text, int64_t* bytes);
bool parse_int(std::string_view text, int64_t* value);
bool parse_float(std::string_view text, double* value);

}  // namespace heddle
