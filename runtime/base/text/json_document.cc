#include "base/text/json_document.h"

#include <fmt/format.h>

#include <charconv>
#include <new>
#include <nlohmann/json.hpp>

#include "base/text/limit_names.h"
#include "base/text/text.h"

namespace heddle {
namespace {

// Describes the place of byte `position` of `text` and the character there.
std::string place(std::string_view text, size_t position) {
  position = std::min(position, text.size());
  size_t line = 1;
  size_t line_begin = 0;
  for (size_t i = 0; i < position; ++i) {
    if (text[i] != '\n') continue;
    ++line;
    line_begin = i + 1;
  }
  const size_t near_begin = position > 12 ? std::max(line_begin, position - 12) : line_begin;
  return fmt::format("line {}, column {}, near {}", line, position - line_begin + 1,
                     quoted(text.substr(near_begin, std::min<size_t>(24, text.size() - near_begin))));
}

template <class T>
std::optional<T> parsed(std::string_view text) {
  T value{};
  const auto r = std::from_chars(text.data(), text.data() + text.size(), value);
  if (r.ec != std::errc() || r.ptr != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

// The receiver of nlohmann's events: appends tokens, closes containers.
struct JsonTape {
  JsonDocument document;
  std::vector<uint32_t> open;  // containers that are not closed
  size_t depth_limit;
  bool too_deep = false;
  bool too_long = false;
  size_t error_position = 0;

  explicit JsonTape(int depth) : depth_limit(static_cast<size_t>(depth)) {}

  bool add(JsonValue::Kind kind, std::string_view text, bool key = false) {
    JsonDocument::Token token = {};
    token.kind = static_cast<uint64_t>(kind) & 0xFF;
    token.offset = document.text_.size() & ((uint64_t{1} << 56) - 1);
    token.length = static_cast<uint32_t>(text.size());
    token.next = static_cast<uint32_t>(document.tokens_.size() + 1);
    if (document.tokens_.size() >= UINT32_MAX - 1 || text.size() > UINT32_MAX) {
      too_long = true;
      return false;
    }
    document.text_.append(text);
    // A member counts once, by its key; its value follows.
    if (!open.empty() && (key || document.tokens_[open.back()].kind == static_cast<uint64_t>(JsonValue::Kind::array)))
      ++document.tokens_[open.back()].length;
    document.tokens_.push_back(token);
    return true;
  }
  bool begin(JsonValue::Kind kind) {
    if (open.size() >= depth_limit) {
      too_deep = true;
      return false;
    }
    if (!add(kind, {})) return false;
    open.push_back(static_cast<uint32_t>(document.tokens_.size() - 1));
    return true;
  }
  bool finish() {
    document.tokens_[open.back()].next = static_cast<uint32_t>(document.tokens_.size());
    open.pop_back();
    return true;
  }
  template <class T>
  bool add_integer(T value) {
    char buffer[24];
    return add(JsonValue::Kind::number, {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr});
  }

  bool null() { return add(JsonValue::Kind::null, {}); }
  bool boolean(bool value) { return add(JsonValue::Kind::boolean, value ? "1" : "0"); }
  bool number_integer(int64_t value) { return add_integer(value); }
  bool number_unsigned(uint64_t value) { return add_integer(value); }
  bool number_float(double, const std::string& spelling) { return add(JsonValue::Kind::number, spelling); }
  bool string(std::string& value) { return add(JsonValue::Kind::string, value); }
  bool binary(std::vector<uint8_t>&) { return false; }
  bool start_object(size_t) { return begin(JsonValue::Kind::object); }
  bool key(std::string& value) { return add(JsonValue::Kind::string, value, true); }
  bool end_object() { return finish(); }
  bool start_array(size_t) { return begin(JsonValue::Kind::array); }
  bool end_array() { return finish(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) {
    error_position = position > 0 ? position - 1 : 0;  // nlohmann counts the bytes read
    return false;
  }
};

Result<JsonDocument> JsonDocument::parse(std::string_view text, int depth) {
  // nlohmann takes a zero byte for the end, and ignores everything after it.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos)
    return Status(Code::syntax, fmt::format("this is not valid JSON: {}", place(text, zero)), "mend the text there");
  JsonTape tape(depth);
  bool ok = false;
  try {
    ok = nlohmann::json::sax_parse(text.begin(), text.end(), &tape);
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, fmt::format("no memory for JSON text of {}", human_bytes(static_cast<int64_t>(text.size()))));
  } catch (const std::exception&) {
    return Status(Code::syntax, "this is not valid JSON");
  }
  if (tape.too_deep)
    return Status(Code::limit_exceeded, fmt::format("the JSON text nests deeper than {} levels", depth), raise_limit("subnet_depth"));
  if (tape.too_long) return Status(Code::limit_exceeded, "the JSON text has more than 2^32 values");
  if (!ok) return Status(Code::syntax, fmt::format("this is not valid JSON: {}", place(text, tape.error_position)), "mend the text there");
  tape.document.tokens_.shrink_to_fit();
  return std::move(tape.document);
}

JsonValue::Kind JsonValue::kind() const {
  return static_cast<Kind>(document_->tokens_[at_].kind);
}
bool JsonValue::boolean() const {
  return is(Kind::boolean) && document_->text_[document_->tokens_[at_].offset] == '1';
}
std::string_view JsonValue::text() const {
  const JsonDocument::Token& token = document_->tokens_[at_];
  if (!is(Kind::string) && !is(Kind::number)) return {};
  return std::string_view(document_->text_).substr(token.offset, token.length);
}
uint32_t JsonValue::size() const {
  return is(Kind::array) || is(Kind::object) ? document_->tokens_[at_].length : 0;
}
std::optional<int64_t> JsonValue::integer() const {
  return is(Kind::number) ? parsed<int64_t>(text()) : std::nullopt;
}
std::optional<uint64_t> JsonValue::natural() const {
  return is(Kind::number) ? parsed<uint64_t>(text()) : std::nullopt;
}
std::optional<double> JsonValue::real() const {
  return is(Kind::number) ? parsed<double>(text()) : std::nullopt;
}

JsonValue::Iterator JsonValue::begin() const {
  return {document_, is(Kind::array) || is(Kind::object) ? at_ + 1 : document_->tokens_[at_].next};
}
JsonValue::Iterator JsonValue::end() const {
  return {document_, document_->tokens_[at_].next};
}
std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!is(Kind::object)) return std::nullopt;
  const Iterator stop = end();
  for (Iterator i = begin(); !(i == stop); ++i) {
    const bool here = (*i).text() == key;
    ++i;
    if (here) return *i;
  }
  return std::nullopt;
}
JsonValue::Iterator& JsonValue::Iterator::operator++() {
  at_ = document_->tokens_[at_].next;
  return *this;
}

}  // namespace heddle
