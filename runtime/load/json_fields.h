// The members of one JSON object, checked against the permitted keys.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "base/text/json_document.h"
#include "heddle/status.h"

namespace heddle {

class JsonFields {
 public:
  static constexpr size_t max_keys = 16;
  // `keys` must outlive this; at most max_keys.
  JsonFields(JsonValue object, std::span<const std::string_view> keys);
  // Whether the value was an object of known keys, each once. Errors: syntax with the nearest key.
  const Status& status() const { return status_; }
  // Returns the member, or nothing when it is absent or null where null is no value.
  std::optional<JsonValue> get(std::string_view key) const;
  // Returns a member of that kind; one of another kind is an error in `status`.
  std::optional<JsonValue> get(std::string_view key, JsonValue::Kind kind, Status* status) const;
  // The text of a string member; empty when absent.
  std::string_view text(std::string_view key, Status* status) const;
  // Returns an integer, or `otherwise` when absent; an error when it is no integer in [low, high].
  int64_t integer(std::string_view key, int64_t low, int64_t high, int64_t otherwise, Status* status) const;
  bool boolean(std::string_view key, Status* status) const;  // false when absent

 private:
  std::span<const std::string_view> keys_;
  std::array<std::optional<JsonValue>, max_keys> values_;
  Status status_;
};

}  // namespace heddle
