// JsonDocument: JSON text from outside as a compact tree that is read in order.
//
// 16 bytes per value in addition to its text; numbers keep their spelling, so that no precision is lost before the reader knows the type
// it wants. Duplicate keys are refused by the readers of members. Immutable after parse; values refer to the document.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/status.h"

namespace heddle {

class JsonDocument;

// One value of a document: a cursor of two words. Valid while the document lives and is not moved.
class JsonValue {
 public:
  enum class Kind : uint8_t { null, boolean, number, string, array, object };
  Kind kind() const;
  bool is(Kind k) const { return kind() == k; }
  bool boolean() const;           // the value of a boolean
  std::string_view text() const;  // the content of a string, the spelling of a number; else empty
  uint32_t size() const;          // elements of an array, members of an object
  // Return the number as an integer or a double; nullopt when this is no number, or none that fits.
  std::optional<int64_t> integer() const;
  std::optional<uint64_t> natural() const;
  std::optional<double> real() const;

  // Iterates over the elements of an array, in order; empty range for all else:   for (JsonValue v : value) ...
  class Iterator;
  Iterator begin() const;
  Iterator end() const;
  // Returns the member of an object, by linear search.
  std::optional<JsonValue> find(std::string_view key) const;
  // Members of an object alternate in the iteration: key (a string), value, key, value ...

 private:
  friend class JsonDocument;
  JsonValue(const JsonDocument* document, uint32_t at) : document_(document), at_(at) {}
  const JsonDocument* document_;
  uint32_t at_;
};

class JsonDocument {
 public:
  // Errors: syntax with line and column; limit_exceeded beyond `depth` nested arrays and objects; out_of_memory.
  static Result<JsonDocument> parse(std::string_view text, int depth);
  JsonValue root() const { return {this, 0}; }

 private:
  friend class JsonValue;
  friend struct JsonTape;
  struct Token {
    uint64_t offset : 56;  // where its text begins in text_
    uint64_t kind : 8;
    uint32_t length;  // bytes of its text; number of elements or members
    uint32_t next;    // the token after this value and all within it
  };
  std::vector<Token> tokens_;
  std::string text_;
};

class JsonValue::Iterator {
 public:
  Iterator(const JsonDocument* document, uint32_t at) : document_(document), at_(at) {}
  JsonValue operator*() const { return {document_, at_}; }
  Iterator& operator++();
  friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

 private:
  const JsonDocument* document_;
  uint32_t at_;
};

}  // namespace heddle
