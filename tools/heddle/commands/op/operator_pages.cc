#include "commands/op/operator_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/text/text.h"
#include "commands/inspect/operator_text.h"
#include "common/standard_streams.h"

namespace heddle::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* made_by = "<!-- made by `heddle op --pages`: do not edit -->\n";

std::string name_of(const DescribedOperator& one) {
  return one.json["name"];
}

std::string folder_of(const DescribedOperator& one) {
  return one.schema->op->file ? fs::path(one.schema->op->file).parent_path().filename().string() : "";
}

// The page of each operator, without ".md". No page is called as the table of all.
std::map<const DescribedOperator*, std::string> pages_of(const std::vector<DescribedOperator>& operators) {
  std::map<std::string, std::set<std::string>> folders;  // by plugin
  for (const DescribedOperator& one : operators) folders[one.json["plugin"]].insert(folder_of(one));
  std::map<const DescribedOperator*, std::string> pages;
  for (const DescribedOperator& one : operators) {
    const std::string plugin = one.json["plugin"];
    std::string page = file_name_of(folders[plugin].size() > 1 && !folder_of(one).empty() ? folder_of(one) : plugin);
    std::replace(page.begin(), page.end(), ' ', '_');  // a link ends there
    pages[&one] = page == "README" ? "README_" : page;
  }
  return pages;
}

// Text of a paragraph or of a cell of a table, in one line.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : printable_line(text)) {
    const bool begins_mark = out.empty() && std::string_view("#>-+=~").find(c) != std::string_view::npos;
    const bool ends_link = c == '(' && !out.empty() && out.back() == ']';
    if (begins_mark || ends_link || std::string_view("\\|*<").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Code within a line. A bar ends a cell also there, unless a backslash stands before it.
std::string code(const std::string& text) {
  std::string out;
  for (const char c : printable_line(text)) out += c == '|' ? std::string("\\|") : std::string(1, c);
  const bool has_marks = out.find('`') != std::string::npos;
  return has_marks ? fmt::format("`` {} ``", out) : fmt::format("`{}`", out);
}

// A block of code, between marks that it does not have.
std::string code_block(const std::string& text) {
  std::string marks = "```";
  while (text.find(marks) != std::string::npos) marks += '`';
  return fmt::format("\n{0}text\n{1}{0}\n", marks, printable(text));
}

// Counts the headings of a page, and gives each the place that pages of Markdown give it: letters, digits, "_" and "-", in lower case, with
// a number where the place is taken.
class Anchors {
 public:
  std::string next(const std::string& heading) {
    std::string out;
    for (const char c : heading)
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-')
        out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      else if (c == ' ')
        out += '-';
    const int before = taken_[out]++;
    return before == 0 ? out : fmt::format("{}-{}", out, before);
  }

 private:
  std::map<std::string, int> taken_;
};

std::string section(const DescribedOperator& one) {
  const std::string doc = one.json["doc"];
  std::string text = fmt::format("\n## {}\n\n{}\n", cell(name_of(one)), doc.empty() ? "Its plugin says nothing of it." : cell(doc)),
              examples;
  std::string rows = "\n| | | |\n| --- | --- | --- |\n";
  for (const OperatorPart& part : operator_parts(one.json, *one.schema)) {
    const std::string kind = part.kind;
    if (kind == "formula")
      text += code_block(fmt::format("{}\n", printable_line(part.text)));
    else if (kind == "example")
      examples += fmt::format("{}\n", printable_line(part.text));
    else if (kind == "pointwise" || kind == "file")
      rows += fmt::format("| {} |  | {} |\n", kind, code(part.text));
    else
      rows += fmt::format("| {} | {} | {} |\n", kind, part.name.empty() ? "" : code(part.name), cell(part.text));
  }
  rows += fmt::format("| devices |  | {} (kernels of the plugin {}) |\n", join(one.own_devices, ", "), cell(one.json["plugin"]));
  text += rows;
  if (!examples.empty()) text += code_block(examples);
  return text;
}

// Checks that what is there under a page's name, if anything is, is such a page too.
Status check_own(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  std::ifstream file(path);
  std::string line;
  if (std::getline(file, line) && fmt::format("{}\n", line) == made_by) return {};
  return {Code::file_unwritable, fmt::format("{} is there, and was not made by heddle op --pages", quoted(path.string())),
          "name another folder, or move it away"};
}

}  // namespace

Status write_operator_pages(const std::string& folder, const std::vector<DescribedOperator>& operators) {
  const auto pages = pages_of(operators);
  std::map<std::string, std::string> texts;
  std::map<std::string, Anchors> anchors;
  std::string index = fmt::format("{}# Operators\n\n| operator | what it does | declared in |\n| --- | --- | --- |\n", made_by);
  for (const DescribedOperator& one : operators) {
    const std::string& page = pages.at(&one);
    std::string& text = texts[page];
    if (text.empty()) text = fmt::format("{}# Operators: {}\n\nAll operators: [README.md](README.md).\n", made_by, page);
    text += section(one);
    index += fmt::format("| [{}]({}.md#{}) | {} | {} |\n", cell(name_of(one)), page, anchors[page].next(name_of(one)),
                         cell(first_sentence(one.json["doc"].get<std::string>())), one.schema->op->file ? code(one.schema->op->file) : "");
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return {Code::file_unwritable, fmt::format("the folder {} can not be made: {}", quoted(folder), error.message()),
            "name a folder that can be written"};
  const auto file_of = [&](const std::string& page) { return fs::path(folder) / fmt::format("{}.md", page); };
  HEDDLE_CHECK(check_own(file_of("README")));
  for (const auto& [page, text] : texts) HEDDLE_CHECK(check_own(file_of(page)));
  for (const auto& [page, text] : texts) HEDDLE_CHECK(write_output(file_of(page).string(), text));
  return write_output(file_of("README").string(), index);  // last: its links lead to what is there
}

}  // namespace heddle::tool
