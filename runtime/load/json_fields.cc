#include "load/json_fields.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/text/text.h"

namespace heddle {
namespace {

const char* name_of(JsonValue::Kind kind) {
  static constexpr const char* names[] = {"null", "a boolean", "a number", "a string", "a list", "an object"};
  return names[static_cast<size_t>(kind)];
}

void keep_first(Status* status, Status found) {
  if (status->ok()) *status = std::move(found);
}

Status unknown(std::string_view key, std::span<const std::string_view> keys) {
  std::vector<std::string> known;
  for (const std::string_view k : keys) known.emplace_back(k);
  std::string hint = suggestion(key, known);
  return Status(Code::syntax, fmt::format("the key {} is not known here", quoted(key)),
                hint.empty() ? fmt::format("known are {}", join(known, ", ")) : hint);
}

}  // namespace

JsonFields::JsonFields(JsonValue object, std::span<const std::string_view> keys) : keys_(keys) {
  if (!object.is(JsonValue::Kind::object)) {
    status_ = Status(Code::syntax, fmt::format("an object was expected, not {}", name_of(object.kind())));
    return;
  }
  const JsonValue::Iterator stop = object.end();
  for (JsonValue::Iterator at = object.begin(); !(at == stop); ++at) {
    const std::string_view key = (*at).text();
    ++at;
    size_t i = 0;
    while (i < keys.size() && keys[i] != key) ++i;
    if (i == keys.size())
      keep_first(&status_, unknown(key, keys));
    else if (values_[i])
      keep_first(&status_, Status(Code::syntax, fmt::format("the key {} is given twice", quoted(key)), "remove one"));
    else
      values_[i] = *at;
  }
}

std::optional<JsonValue> JsonFields::get(std::string_view key) const {
  for (size_t i = 0; i < keys_.size(); ++i)
    if (keys_[i] == key) return values_[i];
  return std::nullopt;
}

std::optional<JsonValue> JsonFields::get(std::string_view key, JsonValue::Kind kind, Status* status) const {
  const std::optional<JsonValue> value = get(key);
  if (!value || value->is(kind)) return value;
  keep_first(status, Status(Code::syntax, fmt::format("{} must be {}, not {}", quoted(key), name_of(kind), name_of(value->kind()))));
  return std::nullopt;
}

std::string_view JsonFields::text(std::string_view key, Status* status) const {
  const std::optional<JsonValue> value = get(key, JsonValue::Kind::string, status);
  return value ? value->text() : std::string_view();
}

int64_t JsonFields::integer(std::string_view key, int64_t low, int64_t high, int64_t otherwise, Status* status) const {
  const std::optional<JsonValue> value = get(key, JsonValue::Kind::number, status);
  if (!value) return otherwise;
  const std::optional<int64_t> number = value->integer();
  if (number && *number >= low && *number <= high) return *number;
  keep_first(status, Status(Code::syntax, fmt::format("{} is {}, not an integer from {} to {}", quoted(key), value->text(), low, high)));
  return otherwise;
}

bool JsonFields::boolean(std::string_view key, Status* status) const {
  const std::optional<JsonValue> value = get(key, JsonValue::Kind::boolean, status);
  return value && value->boolean();
}

}  // namespace heddle
