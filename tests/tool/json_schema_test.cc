// The validator of tests/tool/json_schema.h itself, and docs/schemas/.
#include "json_schema.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace heddle::tool_tests {
namespace {

size_t wrong(const char* value, const char* schema) {
  return SchemaCheck::run(Json::parse(value), Json::parse(schema)).size();
}

TEST(JsonSchema, FindsWhatIsWrong) {
  const char* schema = R"({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": ["integer", "null"]},
    "b": {"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 1}}, "additionalProperties": false})";
  EXPECT_EQ(wrong(R"({"a": 1, "b": ["x"]})", schema), 0u);
  EXPECT_EQ(wrong(R"({"a": null, "b": ["x", "y"]})", schema), 0u);
  EXPECT_EQ(wrong(R"({"a": 1.5, "b": ["x"]})", schema), 1u);
  EXPECT_EQ(wrong(R"({"b": ["x"]})", schema), 1u);
  EXPECT_EQ(wrong(R"({"a": 1, "b": ["z"]})", schema), 1u);
  EXPECT_EQ(wrong(R"({"a": 1, "b": []})", schema), 1u);
  EXPECT_EQ(wrong(R"({"a": 1, "b": ["x"], "c": 1})", schema), 1u);
  EXPECT_EQ(wrong("[]", schema), 1u);
  EXPECT_EQ(wrong(R"({"k": 1})", R"({"additionalProperties": {"type": "string"}})"), 1u);
  EXPECT_EQ(wrong(R"("abc")", R"({"pattern": "^b"})"), 1u);
  EXPECT_EQ(wrong("1", R"({"maximum": 0})"), 1u) << "a keyword that is not checked must not pass silently";
  EXPECT_EQ(wrong("1", R"({"$ref": "common.json#/$defs/nowhere"})"), 1u);
  EXPECT_EQ(wrong(R"("f33")", R"({"$ref": "common.json#/$defs/dtype"})"), 1u);
}

TEST(JsonSchema, EveryFileOfTheDocumentationIsOne) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/docs/schemas")) {
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    const Json schema = schema_file(name);
    ASSERT_TRUE(schema.is_object());
    ++files;
    // A schema that accepts anything would check nothing.
    EXPECT_FALSE(SchemaCheck::run(Json::object(), schema).empty());
    EXPECT_TRUE(name == "common.json" || schema.value("additionalProperties", Json()) == Json(false));
  }
  EXPECT_EQ(files, 21u);
}

}  // namespace
}  // namespace heddle::tool_tests
