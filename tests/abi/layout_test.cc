// Compares the layout of the C boundary with tests/abi/layout.golden: a line may be added, never changed (from ABI 1.0 on).
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <map>
#include <set>

#include "heddle/abi.h"
#include "heddle/device_plugin.h"

namespace {

struct Field {
  const char* name;
  size_t offset;
  size_t size;
};

// There is no hole between fields and none after the last: padding is explicit, so that a later field cannot hide in it.
template <size_t N>
constexpr bool fills(const Field (&fields)[N], size_t struct_bytes) {
  size_t end = 0;
  for (const Field& field : fields) {
    if (field.offset != end) return false;
    end = field.offset + field.size;
  }
  return end == struct_bytes;
}

#define HEDDLE_STRUCT(struct_name)    \
  namespace layout_of_##struct_name { \
    using Struct = struct_name;       \
    constexpr Field fields[] = {
#define HEDDLE_FIELD(field) {#field, offsetof(Struct, field), sizeof(Struct::field)},
#define HEDDLE_END(struct_name)                                                                                \
  }                                                                                                            \
  ;                                                                                                            \
  static_assert(fills(fields, sizeof(Struct)),                                                                 \
                "a field of " #struct_name " is missing in tests/abi/fields.inc, or it has implicit padding"); \
  }
#include "fields.inc"
#undef HEDDLE_STRUCT
#undef HEDDLE_FIELD
#undef HEDDLE_END

// "struct.field" -> "offset size"
std::map<std::string, std::string> compiled_layout() {
  std::map<std::string, std::string> lines;
#define HEDDLE_STRUCT(struct_name)                           \
  for (const Field& field : layout_of_##struct_name::fields) \
    lines[std::string(#struct_name ".") + field.name] = std::to_string(field.offset) + " " + std::to_string(field.size);
#define HEDDLE_FIELD(field)
#define HEDDLE_END(struct_name)
#include "fields.inc"
#undef HEDDLE_STRUCT
#undef HEDDLE_FIELD
#undef HEDDLE_END
  return lines;
}

TEST(AbiLayout, MatchesTheGoldenFile) {
  std::ifstream file(HEDDLE_SOURCE_DIR "/tests/abi/layout.golden");
  ASSERT_TRUE(file.good());
  const std::map<std::string, std::string> now = compiled_layout();
  std::set<std::string> golden;
  std::string field, offset, size;
  while (file >> field >> offset >> size) {
    ASSERT_TRUE(golden.insert(field).second) << field << " stands twice";
    const auto it = now.find(field);
    if (it == now.end())
      ADD_FAILURE() << field << " is gone: fields are never removed or renamed";
    else
      EXPECT_EQ(it->second, offset + " " + size) << field << " has moved or changed its size";
  }
  for (const auto& [name, place] : now)
    EXPECT_TRUE(golden.count(name)) << "new field: add this line to layout.golden\n" << name << " " << place;
  EXPECT_GT(golden.size(), 150u);
}

TEST(AbiLayout, EveryStructOfTheHeadersIsListed) {
  std::set<std::string> listed;
  for (const auto& [name, place] : compiled_layout()) listed.insert(name.substr(0, name.find('.')));
  for (const char* header : {"abi.h", "device_plugin.h"}) {
    std::ifstream file(std::string(HEDDLE_SOURCE_DIR "/runtime/include/heddle/") + header);
    ASSERT_TRUE(file.good());
    const std::string begin = "typedef struct ";
    for (std::string line; std::getline(file, line);)
      if (line.rfind(begin, 0) == 0 && line.back() == '{') {
        const std::string name = line.substr(begin.size(), line.size() - begin.size() - 2);
        EXPECT_TRUE(listed.count(name)) << name << " of " << header << " is not in tests/abi/fields.inc";
      }
  }
}

// Either side uses HEDDLE_HAS to find out whether the other one knows a field.
TEST(AbiLayout, HasAsksTheStructSize) {
  heddle_kernel kernel = {};
  kernel.struct_size = offsetof(heddle_kernel, accepts_epilogue);
  EXPECT_TRUE(HEDDLE_HAS(heddle_kernel, &kernel, formats));
  EXPECT_FALSE(HEDDLE_HAS(heddle_kernel, &kernel, accepts_epilogue));
  kernel.struct_size = sizeof(kernel);
  EXPECT_TRUE(HEDDLE_HAS(heddle_kernel, &kernel, accepts_epilogue));
}

}  // namespace
