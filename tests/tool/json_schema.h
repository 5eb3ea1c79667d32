// A subset of JSON Schema, as much as docs/schemas/ uses: type, enum, required, properties, additionalProperties, items, minItems, pattern
// and $ref to "common.json#/$defs/NAME". A keyword that is not checked here is an error of the schema, so that no schema promises more than
// the tests check.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace heddle::tool_tests {

using Json = nlohmann::ordered_json;

inline Json schema_file(const std::string& name) {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR) + "/docs/schemas/" + name);
  return Json::parse(file, nullptr, false);
}

class SchemaCheck {
 public:
  // Returns the violations of the schema by `value`, one line each; empty: none.
  static std::vector<std::string> run(const Json& value, const Json& schema) {
    SchemaCheck check;
    check.visit(value, schema, "$");
    return check.wrong_;
  }

 private:
  void report(const std::string& path, const std::string& what) { wrong_.push_back(path + ": " + what); }

  static bool has_type(const Json& value, const std::string& type) {
    if (type == "integer") return value.is_number_integer();
    return type == (value.is_number() ? "number" : std::string(value.type_name()));
  }

  void visit(const Json& value, const Json& schema, const std::string& path) {
    if (!schema.is_object()) return report(path, "the schema is no object");
    static const std::set<std::string> known = {"$schema", "$defs",    "$ref",       "title",    "description",          "type",
                                                "enum",    "required", "properties", "minItems", "additionalProperties", "items",
                                                "pattern"};
    for (const auto& [keyword, rule] : schema.items())
      if (!known.contains(keyword)) report(path, "the schema says " + keyword + ", which is not checked");
    if (schema.contains("$ref")) follow(value, schema["$ref"].get<std::string>(), path);
    if (schema.contains("type")) {
      const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
      bool any = false;
      for (const Json& type : types) any = any || has_type(value, type.get<std::string>());
      if (!any) return report(path, "is " + value.dump().substr(0, 60) + ", must be " + types.dump());
    }
    if (schema.contains("enum") && std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      report(path, value.dump() + " is none of " + schema["enum"].dump());
    if (schema.contains("pattern") && value.is_string() &&
        !std::regex_search(value.get<std::string>(), std::regex(schema["pattern"].get<std::string>())))
      report(path, value.dump() + " does not match " + schema["pattern"].dump());
    if (value.is_object()) visit_object(value, schema, path);
    if (value.is_array()) {
      if (schema.contains("minItems") && value.size() < schema["minItems"].get<size_t>()) report(path, "has too few items");
      for (size_t i = 0; schema.contains("items") && i < value.size(); ++i)
        visit(value[i], schema["items"], path + "[" + std::to_string(i) + "]");
    }
  }

  void visit_object(const Json& value, const Json& schema, const std::string& path) {
    for (const Json& key : schema.value("required", Json::array()))
      if (!value.contains(key.get<std::string>())) report(path, "has no " + key.dump());
    const Json properties = schema.value("properties", Json::object());
    const Json others = schema.value("additionalProperties", Json(true));
    for (const auto& [key, member] : value.items()) {
      if (properties.contains(key))
        visit(member, properties[key], path + "." + key);
      else if (others.is_object())
        visit(member, others, path + "." + key);
      else if (others == Json(false))
        report(path, "has \"" + key + "\", which the schema does not know");
    }
  }

  void follow(const Json& value, const std::string& reference, const std::string& path) {
    const std::string prefix = "common.json#/$defs/";
    static const Json common = schema_file("common.json");
    const Json definitions = common.is_object() ? common.value("$defs", Json::object()) : Json::object();
    const std::string name = reference.rfind(prefix, 0) == 0 ? reference.substr(prefix.size()) : "";
    if (!definitions.contains(name)) return report(path, "the schema refers to " + reference + ", which is not there");
    visit(value, definitions[name], path);
  }

  std::vector<std::string> wrong_;
};

}  // namespace heddle::tool_tests
