// Buffer tables: reading, writing, and one clear error with its line for whatever is wrong.
#include "memory/buffers_csv.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "memory/offsets/offsets_check.h"

namespace heddle {
namespace {

constexpr const char* example =
    "id,lower,upper,size\n"
    "b1,0,3,4\n"
    "b2,3,9,4\n"
    "b3,0,9,4\n"
    "b4,9,21,4\n"
    "b5,0,21,4\n";

TEST(BuffersCsv, ReadsPacksAndWritesMiniMallocsExample) {
  const Result<BufferTable> table = parse_buffers_csv(example);
  ASSERT_TRUE(table.ok()) << table.status().text();
  const Result<offsets::Solution> solution = offsets::pack(table->problem);
  ASSERT_TRUE(solution.ok());
  EXPECT_EQ(solution->height, 12);
  EXPECT_TRUE(offsets::check(table->problem, *solution).ok());
  const std::string written = format_buffers_csv(*table, *solution);
  EXPECT_EQ(written.substr(0, 27), "id,lower,upper,size,offset\n");
  EXPECT_EQ(std::count(written.begin(), written.end(), '\n'), 6);
  // Without its last column, the written text equals the text that was read.
  std::string stripped;
  for (size_t at = 0; at < written.size();) {
    const size_t end = written.find('\n', at);
    const std::string line = written.substr(at, end - at);
    stripped += line.substr(0, line.rfind(',')) + "\n";
    at = end + 1;
  }
  EXPECT_EQ(stripped, example);
}

TEST(BuffersCsv, ColumnsMayStandInAnyOrder) {
  const Result<BufferTable> table = parse_buffers_csv("\xEF\xBB\xBFsize, alignment,id,upper,lower\r\n\r\n 100 ,64, x y ,9,-3\r\n7,1,z,4,3");
  ASSERT_TRUE(table.ok()) << table.status().text();
  ASSERT_EQ(table->ids, (std::vector<std::string>{"x y", "z"}));
  const offsets::Buffer& buffer = table->problem.buffers[0];
  EXPECT_EQ(buffer.first, -3);
  EXPECT_EQ(buffer.last, 9);
  EXPECT_EQ(buffer.bytes, 100);
  EXPECT_EQ(buffer.alignment, 64);
  offsets::Solution solution;
  solution.offsets = {64, 0};
  EXPECT_EQ(format_buffers_csv(*table, solution), "id,lower,upper,size,alignment,offset\nx y,-3,9,100,64,64\nz,3,4,7,1,0\n");
}

struct Hostile {
  const char* text;
  Code code;
  const char* says;
};

TEST(BuffersCsv, HostileTablesAreRefusedWithTheirLine) {
  const Hostile cases[] = {
      {"", Code::syntax, "no header"},
      {"\n \n\r\n", Code::syntax, "no header"},
      {"b1,0,3,4\n", Code::syntax, "line 1: unknown column \"b1\""},
      {"id,lower,upper\n", Code::syntax, "line 1: there is no column \"size\""},
      {"id,lower,upper,size,size\n", Code::syntax, "line 1: column \"size\" is there twice"},
      {"id,lower,upper,size,colour\n", Code::syntax, "unknown column \"colour\""},
      {"id,lower,upper,size,offset\n", Code::syntax, "remove the column"},
      {"id,lower,upper,size\na,0,1\n", Code::syntax, "line 2: 3 fields under 4 columns"},
      {"id,lower,upper,size\na,0,1,2,3\n", Code::syntax, "line 2: 5 fields under 4 columns"},
      {"id,lower,upper,size\n\na,0,1,x\n", Code::syntax, "line 3: size is \"x\""},
      {"id,lower,upper,size\na,0,1,1.5\n", Code::syntax, "no 64-bit integer"},
      {"id,lower,upper,size\na,0,1,\n", Code::syntax, "size is \"\""},
      {"id,lower,upper,size\na,0,1,+5\n", Code::syntax, "no 64-bit integer"},
      {"id,lower,upper,size\na,0,1,0x10\n", Code::syntax, "no 64-bit integer"},
      {"id,lower,upper,size\na,0,1,9223372036854775808\n", Code::syntax, "no 64-bit integer"},
      {"id,lower,upper,size\na,0,1,-1\n", Code::syntax, "line 2: size is -1, less than 0"},
      {"id,lower,upper,size\na,5,5,1\n", Code::syntax, "line 2: the life [5, 5) holds no step"},
      {"id,lower,upper,size\na,5,4,1\n", Code::syntax, "the life [5, 4) holds no step"},
      {"id,lower,upper,size,alignment\na,0,1,1,3\n", Code::syntax, "line 2: the alignment 3 is no power of two"},
      {"id,lower,upper,size,alignment\na,0,1,1,0\n", Code::syntax, "alignment is 0, less than 1"},
      {"id,lower,upper,size\n,0,1,1\n", Code::syntax, "line 2: the id is empty"},
      {"id,lower,upper,size\na,0,1,1\nb,0,1,1\na,0,1,1\n", Code::duplicate_name, "line 4: the id \"a\" is there already, in line 2"},
      {"id,lower,upper,size\n\x1b[31m,0,1,y\n", Code::syntax, "size is \"y\""},
      {"id,lower,upper,size\na,0,1,\x1b[31m\n", Code::syntax, "\\u001b"},
  };
  for (const Hostile& hostile : cases) {
    const Result<BufferTable> table = parse_buffers_csv(hostile.text);
    ASSERT_FALSE(table.ok()) << hostile.text;
    EXPECT_EQ(table.status().code(), hostile.code) << hostile.text;
    EXPECT_NE(table.status().text().find(hostile.says), std::string::npos) << table.status().text();
    EXPECT_EQ(table.status().text().find('\x1b'), std::string::npos) << "text from a file is escaped";
  }
  EXPECT_LT(parse_buffers_csv("id,lower,upper,size\na,0,1," + std::string(100'000, '9')).status().text().size(), 400u);
  EXPECT_FALSE(parse_buffers_csv(std::string("id,lower,upper,size\na,0,1,1\0\n", 29)).ok()) << "a null byte is no digit";
  EXPECT_FALSE(parse_buffers_csv(std::string(1'000'000, ',')).ok());
}

TEST(BuffersCsv, LimitsHold) {
  Limits limits;
  limits.nodes = 4;
  EXPECT_EQ(parse_buffers_csv(example, limits).status().code(), Code::limit_exceeded);
  limits = {};
  limits.file_bytes = 10;
  EXPECT_EQ(parse_buffers_csv(example, limits).status().code(), Code::limit_exceeded);
  limits = {};
  limits.name_bytes = 1;
  EXPECT_EQ(parse_buffers_csv(example, limits).status().code(), Code::limit_exceeded);
}

TEST(BuffersCsv, FilesAreReadOrNamed) {
  const std::string path = testing::TempDir() + "/heddle_buffers_csv_test.csv";
  EXPECT_EQ(load_buffers_csv(path + ".absent").status().code(), Code::file_not_found);
  EXPECT_NE(load_buffers_csv(testing::TempDir()).status().code(), Code::ok) << "a folder is no table";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  std::fputs(example, file);
  std::fclose(file);
  EXPECT_EQ(load_buffers_csv("/dev/zero").status().code(), Code::file_unreadable) << "a device is no table";
  const Result<BufferTable> table = load_buffers_csv(path);
  ASSERT_TRUE(table.ok()) << table.status().text();
  EXPECT_EQ(table->ids.size(), 5u);
  Limits limits;
  limits.file_bytes = 20;
  EXPECT_EQ(load_buffers_csv(path, limits).status().code(), Code::limit_exceeded);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace heddle
