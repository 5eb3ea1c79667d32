#include "memory/buffers_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <unordered_map>

#include "base/file.h"
#include "base/text/text.h"

namespace heddle {
namespace {

enum Column : uint8_t { id, lower, upper, size, alignment, columns };
constexpr std::array<std::string_view, columns> column_names = {"id", "lower", "upper", "size", "alignment"};
constexpr const char* header_hint = "the first line is id,lower,upper,size or id,lower,upper,size,alignment";
constexpr size_t max_fields = 16;

Status at_line(size_t line, Code code, std::string message, std::string hint = {}) {
  return {code, fmt::format("line {}: {}", line, message), std::move(hint)};
}

// Quotes a name from the file for a message, cut to a readable length.
std::string shown(std::string_view field) {
  constexpr size_t most = 64;
  return field.size() <= most ? quoted(field) : quoted(field.substr(0, most)) + "...";
}

std::string_view trimmed(std::string_view field) {
  while (!field.empty() && (field.front() == ' ' || field.front() == '\t')) field.remove_prefix(1);
  while (!field.empty() && (field.back() == ' ' || field.back() == '\t')) field.remove_suffix(1);
  return field;
}

// One line, split at its commas; fields past max_fields are dropped.
struct Fields {
  std::array<std::string_view, max_fields> field;
  size_t count = 0;
  explicit Fields(std::string_view line) {
    while (true) {
      const size_t comma = line.find(',');
      if (count < max_fields) field[count] = trimmed(line.substr(0, comma));
      ++count;
      if (comma == std::string_view::npos) return;
      line.remove_prefix(comma + 1);
    }
  }
};

class Parser {
 public:
  explicit Parser(const Limits& limits) : limits_(limits) {}

  Result<BufferTable> parse(std::string_view text) {
    if (static_cast<int64_t>(text.size()) > limits_.file_bytes)
      return over_limit(limits_, &Limits::file_bytes, fmt::format("{} bytes of text", text.size()));
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    bool has_header = false;
    while (!text.empty()) {
      ++line_;
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (trimmed(line).empty()) continue;
      HEDDLE_CHECK(has_header ? parse_row(Fields(line)) : parse_header(Fields(line)));
      has_header = true;
    }
    if (!has_header) return Status(Code::syntax, "there is no header", header_hint);
    return std::move(table_);
  }

 private:
  Status parse_header(const Fields& header) {
    place_.fill(SIZE_MAX);
    for (size_t i = 0; i < std::min(header.count, max_fields); ++i) {
      const auto known = std::find(column_names.begin(), column_names.end(), header.field[i]);
      if (known == column_names.end())
        return at_line(line_, Code::syntax, fmt::format("unknown column {}", shown(header.field[i])),
                       header.field[i] == "offset" ? "remove the column: offsets are what the planner finds" : header_hint);
      size_t& place = place_[static_cast<size_t>(known - column_names.begin())];
      if (place != SIZE_MAX)
        return at_line(line_, Code::syntax, fmt::format("column {} is there twice", shown(header.field[i])), header_hint);
      place = i;
    }
    for (const Column column : {id, lower, upper, size})
      if (place_[column] == SIZE_MAX)
        return at_line(line_, Code::syntax, fmt::format("there is no column {}", quoted(column_names[column])), header_hint);
    width_ = header.count;
    table_.has_alignment = place_[alignment] != SIZE_MAX;
    return {};
  }

  Status parse_row(const Fields& row) {
    if (row.count != width_) return at_line(line_, Code::syntax, fmt::format("{} fields under {} columns", row.count, width_));
    if (static_cast<int64_t>(table_.ids.size()) >= limits_.nodes)
      return over_limit(limits_, &Limits::nodes, fmt::format("line {}: too many buffers", line_));
    const std::string_view name = row.field[place_[id]];
    if (name.empty()) return at_line(line_, Code::syntax, "the id is empty");
    if (static_cast<int64_t>(name.size()) > limits_.name_bytes)
      return over_limit(limits_, &Limits::name_bytes, fmt::format("line {}: an id of {} bytes", line_, name.size()));
    if (const auto [known, fresh] = lines_.try_emplace(std::string(name), line_); !fresh)
      return at_line(line_, Code::duplicate_name, fmt::format("the id {} is there already, in line {}", shown(name), known->second));
    offsets::Buffer buffer;
    HEDDLE_CHECK(number(row, lower, INT64_MIN, &buffer.first));
    HEDDLE_CHECK(number(row, upper, INT64_MIN, &buffer.last));
    HEDDLE_CHECK(number(row, size, 0, &buffer.bytes));
    if (table_.has_alignment) HEDDLE_CHECK(number(row, alignment, 1, &buffer.alignment));
    if (buffer.first >= buffer.last)
      return at_line(line_, Code::syntax, fmt::format("the life [{}, {}) holds no step", buffer.first, buffer.last),
                     "lower is below upper: a buffer is alive in [lower, upper)");
    if (!std::has_single_bit(static_cast<uint64_t>(buffer.alignment)))
      return at_line(line_, Code::syntax, fmt::format("the alignment {} is no power of two", buffer.alignment));
    table_.ids.emplace_back(name);
    table_.problem.buffers.push_back(buffer);
    return {};
  }

  Status number(const Fields& row, Column column, int64_t least, int64_t* value) const {
    const std::string_view field = row.field[place_[column]];
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), *value);
    if (error != std::errc() || end != field.data() + field.size())
      return at_line(line_, Code::syntax, fmt::format("{} is {}, which is no 64-bit integer", column_names[column], shown(field)));
    if (*value < least) return at_line(line_, Code::syntax, fmt::format("{} is {}, less than {}", column_names[column], *value, least));
    return {};
  }

  const Limits& limits_;
  BufferTable table_;
  std::unordered_map<std::string, size_t> lines_;  // the line of each id
  std::array<size_t, columns> place_{};
  size_t width_ = 0;
  size_t line_ = 0;
};

}  // namespace

Result<BufferTable> parse_buffers_csv(std::string_view text, const Limits& limits) {
  return Parser(limits).parse(text);
}

Result<BufferTable> load_buffers_csv(const std::string& path, const Limits& limits) {
  HEDDLE_TRY(const FileBytes bytes, read_file(path, limits.file_bytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data.get()), bytes.size);
  HEDDLE_TRY(BufferTable table, parse_buffers_csv(text, limits), fmt::format("in {}", quoted(path)));
  return table;
}

std::string format_buffers_csv(const BufferTable& table, const offsets::Solution& solution) {
  fmt::memory_buffer out;
  fmt::format_to(std::back_inserter(out), "id,lower,upper,size{},offset\n", table.has_alignment ? ",alignment" : "");
  for (size_t i = 0; i < table.ids.size(); ++i) {
    const offsets::Buffer& buffer = table.problem.buffers[i];
    fmt::format_to(std::back_inserter(out), "{},{},{},{},", table.ids[i], buffer.first, buffer.last, buffer.bytes);
    if (table.has_alignment) fmt::format_to(std::back_inserter(out), "{},", buffer.alignment);
    fmt::format_to(std::back_inserter(out), "{}\n", solution.offsets[i]);
  }
  return fmt::to_string(out);
}

}  // namespace heddle
