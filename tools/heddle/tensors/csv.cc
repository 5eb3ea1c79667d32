#include "tensors/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/element.h"
#include "base/file.h"
#include "base/text/text.h"
#include "tensors/convert.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

// Takes a file apart into cells.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // the byte order mark that spreadsheets write
  }
  int64_t line() const { return line_; }
  // Returns the first of the empty lines before the row that was read last; 0: there was none.
  int64_t empty_line() const { return empty_line_; }
  // Reads the cells of the next line that is not empty; none: the file is over.
  Result<std::vector<std::string>> row() {
    std::vector<std::string> cells;
    empty_line_ = 0;
    while (at_ < text_.size() && cells.empty()) {
      line_ = next_line_;
      const bool is_quoted = text_[at_] == '"';
      bool more = true;
      while (more) {
        HEDDLE_TRY(std::string cell, read_cell());
        cells.push_back(std::move(cell));
        more = at_ < text_.size() && text_[at_] == ',';
        if (more) ++at_;
      }
      skip_line_end();
      if (cells.size() > 1 || !cells[0].empty() || is_quoted) continue;
      cells.clear();
      if (empty_line_ == 0) empty_line_ = line_;
    }
    return cells;
  }

 private:
  Result<std::string> read_cell() {
    if (at_ < text_.size() && text_[at_] == '"') return read_quoted();
    const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    const std::string_view cell = text_.substr(at_, end - at_);
    at_ = end;
    const size_t first = cell.find_first_not_of(" \t"), last = cell.find_last_not_of(" \t");
    return first == std::string_view::npos ? std::string() : std::string(cell.substr(first, last - first + 1));
  }
  Result<std::string> read_quoted() {
    std::string cell;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') ++next_line_;
      if (c != '"') {
        cell += c;
      } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
        cell += '"';
        ++at_;
      } else {
        ++at_;
        at_ = std::min(text_.find_first_not_of(" \t", at_), text_.size());
        if (at_ == text_.size() || std::string_view(",\r\n").find(text_[at_]) != std::string_view::npos) return cell;
        return Status(Code::syntax, fmt::format("line {}: something follows a quotation mark that ends a cell", line_),
                      "write \"\" for one within a cell");
      }
    }
    return Status(Code::syntax, fmt::format("line {}: a quotation mark has no end", line_), "write \"\" for one within a cell");
  }
  void skip_line_end() {
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ < text_.size() && text_[at_] == '\n') ++at_;
    ++next_line_;
  }

  const std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1, next_line_ = 1, empty_line_ = 0;
};

struct Column {
  size_t at = 0;  // in a row
  std::string name;
};

Result<std::vector<Column>> choose_columns(const std::vector<std::string>& header, const std::string& wanted) {
  std::vector<Column> chosen;
  if (wanted.empty()) {
    for (size_t i = 0; i < header.size(); ++i) chosen.push_back({i, header[i]});
    return chosen;
  }
  for (size_t begin = 0; begin <= wanted.size();) {
    const size_t end = std::min(wanted.find(',', begin), wanted.size());
    const std::string name = wanted.substr(begin, end - begin);
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end())
      return Status(Code::unknown_name, fmt::format("there is no column {}", quoted(name)), suggestion(name, header));
    if (std::count(header.begin(), header.end(), name) > 1)
      return Status(Code::duplicate_name, fmt::format("two columns are called {}", quoted(name)), "give each another name");
    if (std::any_of(chosen.begin(), chosen.end(), [&](const Column& c) { return c.name == name; }))
      return Status(Code::duplicate_name, fmt::format("column {} is named twice", quoted(name)), "name it once");
    chosen.push_back({static_cast<size_t>(found - header.begin()), name});
    begin = end + 1;
  }
  return chosen;
}

// The numbers of the columns, row after row: whole ones as long as all are.
struct Numbers {
  std::vector<int64_t> whole;
  std::vector<double> real;
  bool all_whole = true;
  bool add(std::string_view text) {
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    const char* const end = text.data() + text.size();
    if (int64_t number = 0; all_whole) {
      const auto [last, error] = std::from_chars(text.data(), end, number);
      all_whole = error == std::errc() && last == end;
      whole.push_back(number);
    }
    double number = 0;
    const auto [last, error] = std::from_chars(text.data(), end, number);
    real.push_back(number);
    return error == std::errc() && last == end;
  }
};

// Checks that a row has a cell for each column.
Status check_row(const CsvReader& reader, const std::vector<std::string>& cells, const std::vector<std::string>& header) {
  if (header.size() == 1 && reader.empty_line() != 0)
    return {Code::syntax, fmt::format("line {} is empty, and there is nothing for column {}", reader.empty_line(), quoted(header[0])),
            "write it there, or remove the line"};
  if (cells.size() != header.size())
    return {Code::syntax, fmt::format("line {} has {} cells, the header has {}", reader.line(), cells.size(), header.size()),
            "look for a comma too many or too few"};
  return {};
}

Result<std::shared_ptr<const Blob>> read_columns(std::string_view text, const std::string& wanted) {
  CsvReader reader(text);
  HEDDLE_TRY(const std::vector<std::string> header, reader.row());
  if (header.empty()) return Status(Code::syntax, "there is no header", "name the columns in the first line");
  HEDDLE_TRY(const std::vector<Column> columns, choose_columns(header, wanted));
  Numbers numbers;
  int64_t rows = 0;
  for (;; ++rows) {
    HEDDLE_TRY(const std::vector<std::string> cells, reader.row());
    if (cells.empty()) break;  // empty lines at the end of a file are no rows
    HEDDLE_CHECK(check_row(reader, cells, header));
    for (const Column& column : columns)
      if (!numbers.add(cells[column.at]))
        return Status(Code::syntax,
                      fmt::format("line {}, column {}: {} is no number", reader.line(), quoted(column.name), quoted(cells[column.at])),
                      "name only columns of numbers: FILE.csv:COLUMN,COLUMN");
  }
  Shape shape = {rows};
  if (wanted.empty() || columns.size() > 1) shape.push_back(static_cast<int64_t>(columns.size()));
  const void* const data = numbers.all_whole ? static_cast<const void*>(numbers.whole.data()) : numbers.real.data();
  return std::shared_ptr<const Blob>(Blob::copy_of(numbers.all_whole ? DType::i64 : DType::f64, shape, data));
}

}  // namespace

Result<std::shared_ptr<const Blob>> read_csv(const std::string& file, const std::string& columns, const Limits& limits) {
  HEDDLE_TRY(const FileBytes bytes, read_file(file, limits.weight_file_bytes, "weight_file_bytes"));
  HEDDLE_TRY(std::shared_ptr<const Blob> blob, read_columns({reinterpret_cast<const char*>(bytes.data.get()), bytes.size}, columns),
             fmt::format("while reading {}", quoted(file)));
  return blob;
}

Result<std::vector<std::string>> read_csv_column(const std::string& file, const std::string& column, const Limits& limits) {
  HEDDLE_TRY(const FileBytes bytes, read_file(file, limits.weight_file_bytes, "weight_file_bytes"));
  CsvReader reader({reinterpret_cast<const char*>(bytes.data.get()), bytes.size});
  const std::string what = fmt::format("while reading {}", quoted(file));
  HEDDLE_TRY(const std::vector<std::string> header, reader.row(), what);
  HEDDLE_TRY(const std::vector<Column> columns, choose_columns(header, column), what);
  if (columns.size() != 1) return Status(Code::unknown_name, "one column is wanted", "name it: FILE.csv:COLUMN").during(what);
  std::vector<std::string> wanted;
  for (;;) {
    HEDDLE_TRY(std::vector<std::string> cells, reader.row(), what);
    if (cells.empty()) return wanted;
    HEDDLE_CHECK(check_row(reader, cells, header), what);
    if (cells[columns[0].at].empty())
      return Status(Code::syntax, fmt::format("line {} has nothing in column {}", reader.line(), quoted(column)), "write it there")
          .during(what);
    wanted.push_back(std::move(cells[columns[0].at]));
  }
}

bool all_are_numbers(const std::vector<std::string>& cells) {
  Numbers numbers;
  return std::all_of(cells.begin(), cells.end(), [&](const std::string& cell) { return numbers.add(cell); });
}

bool is_csv(const std::string& text) {
  return file_of_tensor(text).ends_with(".csv");
}

std::shared_ptr<const Blob> csv_for_input(const std::shared_ptr<const Blob>& blob, const PortInfo& input) {
  Shape shape = blob->shape;
  if (input.ranked && input.shape.rank() == 2 && shape.rank() == 1) shape.push_back(1);
  const bool fits = is_float(input.dtype);  // whole numbers may be too large for another dtype: their reader looks
  const std::shared_ptr<const Blob> numbers = fits && blob->dtype != input.dtype ? converted(*blob, input.dtype) : blob;
  return Blob::copy_of(numbers->dtype, shape, numbers->data);
}

}  // namespace heddle::tool
