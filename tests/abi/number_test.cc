// The number of the ABI changes with the ABI: HEDDLE_ABI_HASH is a hash of the declarations in the headers, and tests/abi/numbers.golden
// lists the hash of each number.
#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <xxhash.h>

#include <cctype>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "heddle/abi.h"

namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(std::string(HEDDLE_SOURCE_DIR "/") + path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns true for the lines that define the number and the hash, which are not hashed themselves.
bool is_number(const std::string& line) {
  return line.rfind("#define HEDDLE_ABI_MAJOR", 0) == 0 || line.rfind("#define HEDDLE_ABI_MINOR", 0) == 0 ||
         line.rfind("#define HEDDLE_ABI_HASH", 0) == 0;
}

// Returns the declarations of a header: without comments, numbers and spaces, except for one space between two words.
std::string declarations(const std::string& header) {
  std::string code;
  for (size_t i = 0; i < header.size(); ++i) {
    if (header.compare(i, 2, "/*") == 0) {
      i = header.find("*/", i + 2) + 1;
      code += ' ';
    } else if (header.compare(i, 2, "//") == 0) {
      i = header.find('\n', i) - 1;
    } else {
      code += header[i];
    }
  }
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::string text;
  bool space = false;
  std::istringstream lines(code);
  for (std::string line; std::getline(lines, line); space = true) {
    if (is_number(line)) continue;
    for (const char c : line) {
      if (std::isspace(static_cast<unsigned char>(c))) {
        space = true;
        continue;
      }
      if (space && !text.empty() && is_word(text.back()) && is_word(c)) text += ' ';
      space = false;
      text += c;
    }
  }
  return text;
}

uint64_t hash_of(const std::string& abi, const std::string& device_plugin) {
  const std::string all = declarations(abi) + '\n' + declarations(device_plugin);
  return XXH64(all.data(), all.size(), 0);
}

std::string hex(uint64_t hash) {
  char text[19];
  std::snprintf(text, sizeof(text), "0x%016" PRIx64, hash);
  return text;
}

struct Number {
  unsigned major, minor;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};

// Returns the mistake in the last line of `table`, whose lines hold a number and its hash; empty: the line is this number with this hash.
std::string mistake(const std::string& table, Number number, uint64_t hash) {
  std::istringstream lines(table);
  std::string known, of, last, last_of;
  while (lines >> known >> of) {
    if (known == number.text() && of != hex(hash))
      return "what the headers declare has changed, and the number has not: ABI " + known + " stands for " + of + " in " +
             "tests/abi/numbers.golden. Set HEDDLE_ABI_MINOR to " + std::to_string(number.minor + 1) + " and HEDDLE_ABI_HASH to UINT64_C(" +
             hex(hash) + ") in abi.h, and add this line there\n" + Number{number.major, number.minor + 1}.text() + " " + hex(hash);
    last = known, last_of = of;
  }
  if (last != number.text() || last_of != hex(hash)) return "add this line to tests/abi/numbers.golden\n" + number.text() + " " + hex(hash);
  return {};
}

constexpr Number current = {HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR};

TEST(AbiNumber, MovesWithWhatTheHeadersDeclare) {
  const uint64_t now = hash_of(file_text("runtime/include/heddle/abi.h"), file_text("runtime/include/heddle/device_plugin.h"));
  EXPECT_EQ(mistake(file_text("tests/abi/numbers.golden"), current, now), "");
  EXPECT_EQ(hex(HEDDLE_ABI_HASH), hex(now)) << "HEDDLE_ABI_HASH in abi.h is not the hash of what the headers declare";
}

// Applies the check of the test above to changed headers.
TEST(AbiNumber, AChangeWithoutANewNumberIsFound) {
  const std::string abi = file_text("runtime/include/heddle/abi.h"), device = file_text("runtime/include/heddle/device_plugin.h");
  const std::string table = file_text("tests/abi/numbers.golden");
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = abi;
    EXPECT_NE(text.find(from), std::string::npos) << from;
    return hash_of(text.replace(text.find(from), from.size(), to), device);
  };
  for (const auto& [from, to] : {std::pair<const char*, const char*>{"HEDDLE_OK = 0", "HEDDLE_OK = 9"},           // the value of a constant
                                 {"uint32_t (*thread_index)", "uint64_t (*thread_index)"},                        // a signature
                                 {"uint64_t abi_hash;", "uint64_t abi_hash;\n  void (*later)(const void*);"}}) {  // a new field
    const std::string text = mistake(table, current, changed(from, to));
    EXPECT_NE(text.find("the number has not"), std::string::npos) << from;
    EXPECT_NE(text.find("Set HEDDLE_ABI_MINOR to " + std::to_string(HEDDLE_ABI_MINOR + 1)), std::string::npos) << text;
  }
  // After the number changes, the table needs a new line, and passes with it.
  const uint64_t next = changed("HEDDLE_OK = 0", "HEDDLE_OK = 9");
  const Number number = {HEDDLE_ABI_MAJOR, HEDDLE_ABI_MINOR + 1};
  EXPECT_NE(mistake(table, number, next).find("add this line"), std::string::npos);
  EXPECT_EQ(mistake(table + number.text() + " " + hex(next) + "\n", number, next), "");
}

// Comments, line breaks and the numbers themselves do not affect the hash.
TEST(AbiNumber, WordsDoNotMoveIt) {
  EXPECT_EQ(declarations("/* a */ typedef struct a {\n  uint32_t  b;  /* c */\n} a;\n"),
            declarations("typedef struct a { uint32_t b; } a;"));
  EXPECT_EQ(declarations("#define HEDDLE_ABI_MINOR 1\nint a;\n"), declarations("#define HEDDLE_ABI_MINOR 2\nint a;\n"));
  EXPECT_NE(declarations("int a;"), declarations("long a;"));
  EXPECT_NE(declarations("int ab;"), declarations("int a, b;"));
}

}  // namespace
