#include "base/text/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace heddle {
namespace {

// Returns the length of the UTF-8 sequence at `s`, 0 when it is not valid.
size_t utf8_length(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t n = lead >= 0xF0 && lead < 0xF5 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 0;
  if (n == 0 || lead >= 0xF5 || s.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;   // overlong
  if (lead == 0xED && byte(1) >= 0xA0) return 0;  // surrogate
  if (lead == 0xF0 && byte(1) < 0x90) return 0;   // overlong
  if (lead == 0xF4 && byte(1) >= 0x90) return 0;  // beyond U+10FFFF
  return n;
}

void append_escape(std::string& out, unsigned value) {
  static constexpr char hex_digits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += hex_digits[(value >> shift) & 15];
}

// Returns the code point of the sequence of `n` bytes at `s`.
unsigned code_point(std::string_view s, size_t n) {
  unsigned code = static_cast<unsigned char>(s[0]);
  if (n > 1) code &= 0xFFu >> (n + 1);
  for (size_t i = 1; i < n; ++i) code = code << 6 | (static_cast<unsigned char>(s[i]) & 0x3Fu);
  return code;
}

// True for code points that show nothing themselves but change how a terminal or a reader displays the others.
bool is_hidden(unsigned code) {
  struct Range {
    unsigned first, last;
  };
  static constexpr Range hidden[] = {
      {0x0000, 0x001F},    // controls
      {0x007F, 0x009F},    // delete, C1 controls
      {0x00AD, 0x00AD},    // soft hyphen
      {0x061C, 0x061C},    // Arabic letter mark
      {0x180E, 0x180E},    // Mongolian vowel separator
      {0x200B, 0x200F},    // zero width, marks of direction
      {0x2028, 0x202E},    // line and paragraph separators, embeddings and overrides of direction
      {0x2060, 0x206F},    // invisible operators, isolates of direction
      {0xFEFF, 0xFEFF},    // byte order mark
      {0xFFF9, 0xFFFB},    // interlinear annotation
      {0xFFFE, 0xFFFF},    // no characters, which XML has not
      {0xE0000, 0xE0FFF},  // tags
  };
  return std::any_of(std::begin(hidden), std::end(hidden), [=](const Range& r) { return code >= r.first && code <= r.last; });
}

// Appends hidden code points as JSON escapes them; beyond 16 bits as a pair of surrogates.
void append_hidden(std::string& out, unsigned code) {
  if (code < 0x10000) return append_escape(out, code);
  append_escape(out, 0xD800 + ((code - 0x10000) >> 10));
  append_escape(out, 0xDC00 + ((code - 0x10000) & 0x3FF));
}

// Appends `text` with hidden characters escaped; `plain(c)` may append a replacement for another character of one byte: it returns true if
// it did.
template <class Plain>
void append_escaped(std::string& out, std::string_view text, Plain plain) {
  for (size_t i = 0; i < text.size();) {
    const size_t n = utf8_length(text.substr(i));
    if (n == 0) {
      append_escape(out, 0xDC00u + static_cast<unsigned char>(text[i++]));  // a lone surrogate represents a byte that is not UTF-8
      continue;
    }
    const unsigned code = code_point(text.substr(i), n);
    if (n == 1 && plain(text[i])) {
      // written
    } else if (is_hidden(code)) {
      append_hidden(out, code);
    } else {
      out.append(text.substr(i, n));
    }
    i += n;
  }
}

template <class T>
std::string shortest_of(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = std::tolower(static_cast<unsigned char>(a[i - 1])) == std::tolower(static_cast<unsigned char>(b[j - 1]));
      const size_t best = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (same ? 0 : 1)});
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append_escaped(out, text, [&](char c) {
    if (c == '\n') out += c;
    return c == '\n';
  });
  return out;
}

std::string printable_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append_escaped(out, text, [&](char c) {
    if (c == '\n') out += "\\n";
    return c == '\n';
  });
  return out;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  append_escaped(out, text, [&](char c) {
    const char letter = c == '\n' ? 'n' : c == '\t' ? 't' : c == '"' || c == '\\' ? c : '\0';
    if (letter != '\0') (out += '\\') += letter;
    return letter != '\0';
  });
  return out + '"';
}

std::string file_name_of(std::string_view text) {
  constexpr size_t longest_bytes = 200;  // file names end at 255 bytes: endings, numbers and those of temporary files fit after it
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t n = utf8_length(text.substr(i));
    const bool kept = n > 0 && !is_hidden(code_point(text.substr(i), n)) &&
                      std::string_view("/\\:*?\"<>|'`$&;!#(){}[]").find(text[i]) == std::string_view::npos;
    const bool first = out.empty() && std::string_view(".-~ ").find(text[i]) != std::string_view::npos;
    const size_t length = std::max<size_t>(n, 1);
    if (out.size() + length > longest_bytes) break;
    if (kept && !first)
      out.append(text.substr(i, length));
    else
      out += '_';
    i += length;
  }
  return out.empty() ? "_" : out;
}

std::string word(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_.:/+-").find(c) != std::string_view::npos;
  });
  return plain ? std::string(text) : quoted(text);
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t n = utf8_length(text.substr(i));
    if (n == 0) return false;
    i += n;
  }
  return true;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty() || &part != &parts.front()) out += separator;
    out += part;
  }
  return out;
}

std::string words(const std::vector<std::string>& texts, std::string_view separator) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) parts.push_back(word(text));
  return join(parts, separator);
}

std::string all_quoted(const std::vector<std::string>& texts, std::string_view separator) {
  std::vector<std::string> parts;
  for (const std::string& text : texts) parts.push_back(quoted(text));
  return join(parts, separator);
}

std::vector<std::string> nearest(std::string_view name, const std::vector<std::string>& candidates, size_t limit) {
  std::vector<std::pair<size_t, std::string>> scored;
  if (name.size() > 64) return {};
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 64) continue;
    const size_t distance = edit_distance(name, candidate);
    if (distance <= std::max<size_t>(1, name.size() / 3)) scored.emplace_back(distance, candidate);
  }
  std::sort(scored.begin(), scored.end());
  scored.erase(std::unique(scored.begin(), scored.end()), scored.end());
  std::vector<std::string> out;
  for (size_t i = 0; i < scored.size() && i < limit; ++i) out.push_back(scored[i].second);
  return out;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& candidates) {
  std::vector<std::string> close = nearest(name, candidates);
  if (close.empty()) return {};
  for (std::string& c : close) c = quoted(c);
  return fmt::format("did you mean {}?", join(close, " or "));
}

std::string shortest(double value) {
  return shortest_of(value);
}
std::string shortest(float value) {
  return shortest_of(value);
}

std::string hex(uint64_t value) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out(16, '0');
  for (size_t i = 16; i-- > 0; value >>= 4) out[i] = digits[value & 15];
  return out;
}

bool parse_hex(std::string_view text, uint64_t* value) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), *value, 16);
  return text.size() == 16 && r.ec == std::errc() && r.ptr == text.data() + text.size();
}

std::string counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string human_bytes(int64_t bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 5) {
    value /= 1024;
    ++unit;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed, unit == 0 ? 0 : 1).ptr;
  return fmt::format("{} {}", std::string_view(buffer, end), units[unit]);
}

bool parse_int(std::string_view text, int64_t* value) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), *value);
  return r.ec == std::errc() && r.ptr == text.data() + text.size() && !text.empty();
}

bool parse_float(std::string_view text, double* value) {
  const auto r = std::from_chars(text.data(), text.data() + text.size(), *value);
  return r.ec == std::errc() && r.ptr == text.data() + text.size() && !text.empty();
}

bool parse_size(std::string_view text, int64_t* bytes) {
  double number = 0;
  const auto r = std::from_chars(text.data(), text.data() + text.size(), number);
  if (r.ec != std::errc() || !(number >= 0) || !std::isfinite(number)) return false;
  std::string_view unit(r.ptr, static_cast<size_t>(text.data() + text.size() - r.ptr));
  double factor = 1;
  if (!unit.empty() && unit != "B") {
    static constexpr std::string_view prefixes = "KMGT";
    const size_t power = prefixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
    if (power == std::string_view::npos) return false;
    unit.remove_prefix(1);
    const bool binary = unit.empty() || unit == "i" || unit == "iB";
    if (!binary && unit != "B") return false;
    for (size_t i = 0; i <= power; ++i) factor *= binary ? 1024 : 1000;
  }
  const double total = number * factor;
  if (total > 9.2e18) return false;
  *bytes = static_cast<int64_t>(total);
  return true;
}

}  // namespace heddle
