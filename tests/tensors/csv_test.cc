// CSV files as tensors: what is read, and what is said of lines that can not be.
#include "tensors/csv.h"

#include <gtest/gtest.h>

#include "load/temporary_folder.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

using testing::TemporaryFolder;

class Csv : public ::testing::Test {
 protected:
  Result<std::shared_ptr<const Blob>> read(std::string_view text, const std::string& columns = "") const {
    const std::string file = (folder_ / "table.csv").string();
    testing::write_text(file, text);
    return read_tensor(columns.empty() ? file : file + ":" + columns);
  }
  // Returns the tensor as text.
  std::string show(std::string_view text, const std::string& columns = "") const {
    const auto blob = read(text, columns);
    if (!blob.ok()) return blob.status().diagnostic().message;
    std::string shown = std::string(to_string((*blob)->dtype)) + (*blob)->shape.text();
    const TensorView view = {(*blob)->dtype, (*blob)->shape, const_cast<std::byte*>((*blob)->data)};
    for (int64_t i = 0; i < view.shape.element_count(); ++i) shown += " " + element_text(view, i);
    return shown;
  }
  const TemporaryFolder folder_;
};

TEST_F(Csv, ColumnsAreNumbers) {
  const char* const table = "x,y,label\n0.5,2,1\n-1e3, 3 ,0\n";
  EXPECT_EQ(show(table), "f64[2, 3] 0.5 2 1 -1000 3 0");
  EXPECT_EQ(show(table, "label"), "i64[2] 1 0");
  EXPECT_EQ(show(table, "y,x"), "f64[2, 2] 2 0.5 3 -1000");
  EXPECT_EQ(show(table, "y,label"), "i64[2, 2] 2 1 3 0");
  EXPECT_EQ(show("id\n9007199254740993\n"), "i64[1, 1] 9007199254740993") << "whole numbers are exact";
  EXPECT_EQ(show("x\n1\n2.5\n"), "f64[2, 1] 1 2.5");
  EXPECT_EQ(show("x,y\n"), "i64[0, 2]");
}

TEST_F(Csv, SpreadsheetsAreRead) {
  EXPECT_EQ(show("\xef\xbb\xbfx,y\r\n1,2\r\n\r\n3,4"), "i64[2, 2] 1 2 3 4") << "a byte order mark, other line ends, an empty line";
  EXPECT_EQ(show("\"x, in m\",\"a \"\"name\"\"\"\n\"1\",2\n", "a \"name\""), "i64[1] 2");
  EXPECT_EQ(show("x,y\n\"1\" ,+2\n"), "i64[1, 2] 1 2");
  EXPECT_EQ(show("name,x\n\"two\nlines\",1\nb,2\n", "x"), "i64[2] 1 2") << "text in columns that are not wanted";
}

TEST_F(Csv, MistakesAreNamedWithTheirLine) {
  EXPECT_EQ(show("x,y\n1,2\n3\n"), "line 3 has 1 cells, the header has 2");
  EXPECT_EQ(show("x,y\n1,2\n3,four\n"), "line 3, column \"y\": \"four\" is no number");
  EXPECT_EQ(show("x,y\n1,\n"), "line 2, column \"y\": \"\" is no number");
  EXPECT_EQ(show("x,y\n\"a\nb\",1\n2,c\n", "y"), "line 4, column \"y\": \"c\" is no number");
  EXPECT_EQ(show("x\n\"1\n"), "line 2: a quotation mark has no end");
  EXPECT_EQ(show("x\n\"0\"1\n"), "line 2: something follows a quotation mark that ends a cell");
  EXPECT_EQ(show(""), "there is no header");
  EXPECT_EQ(show("x,y\n1,2\n", "z"), "there is no column \"z\"");
  EXPECT_EQ(show("x,y\n1,2\n", "x,x"), "column \"x\" is named twice");
  EXPECT_EQ(read("x\nnone\n").status().code(), Code::syntax);
  EXPECT_NE(read("x\nnone\n").status().text().find("table.csv"), std::string::npos);
}

// In a file of one column an empty line is a number that is missing, and the rows after it would be those of other samples.
TEST_F(Csv, AnEmptyLineOfOneColumnIsAMistakeBeforeTheEnd) {
  EXPECT_EQ(show("x\n1\n\n2\n"), "line 3 is empty, and there is nothing for column \"x\"");
  EXPECT_EQ(show("x\r\n1\r\n \t\r\n\r\n2", "x"), "line 3 is empty, and there is nothing for column \"x\"") << "the first one";
  EXPECT_EQ(show("x\n\n1\n"), "line 2 is empty, and there is nothing for column \"x\"");
  EXPECT_EQ(show("x\n1\n\"\"\n2\n"), "line 3, column \"x\": \"\" is no number");
  EXPECT_EQ(show("x\n1\n\"\"\n"), "line 3, column \"x\": \"\" is no number") << "quotation marks are a cell, at the end too";
  EXPECT_EQ(read("x\n1\n\n2\n").status().code(), Code::syntax);
  EXPECT_NE(read("x\n1\n\n2\n").status().text().find("table.csv"), std::string::npos);
  EXPECT_EQ(show("x\n1\n2\n\n\r\n \n"), "i64[2, 1] 1 2") << "empty lines at the end";
  EXPECT_EQ(show("x\n1\n2"), "i64[2, 1] 1 2");
  EXPECT_EQ(show("\nx\n1\n"), "i64[1, 1] 1") << "before the header";
  EXPECT_EQ(show("x\n\n\n"), "i64[0, 1]");
  // A row of several columns is missing as a whole.
  EXPECT_EQ(show("x,y\n1,2\n\n3,4\n", "x"), "i64[2] 1 3");
  EXPECT_EQ(show("x,y\n1,2\n\"\"\n3,4\n"), "line 3 has 1 cells, the header has 2");
}

TEST_F(Csv, TakesTheFormOfAnInput) {
  const auto as = [&](const std::string& columns, DType dtype, const Shape& shape) {
    PortInfo input;
    input.dtype = dtype;
    input.shape = shape;
    input.ranked = true;
    const auto blob = csv_for_input(*read("x,n\n0.5,2\n1,3\n", columns), input);
    return to_string(blob->dtype) + blob->shape.text();
  };
  EXPECT_EQ(as("x,n", DType::f32, Shape{-1, 2}), "f32[2, 2]");
  EXPECT_EQ(as("x", DType::f32, Shape{-1}), "f32[2]");
  EXPECT_EQ(as("x", DType::f32, Shape{-1, 1}), "f32[2, 1]");
  EXPECT_EQ(as("n", DType::i32, Shape{-1}), "i64[2]") << "numbers may be too large for it";
  EXPECT_EQ(as("n", DType::f64, Shape{-1}), "f64[2]");
  EXPECT_EQ(as("x", DType::i64, Shape{-1}), "f64[2]") << "fractions are not lost without a word";
}

}  // namespace
}  // namespace heddle::tool
