#include "commands/inspect/operator_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>

#include "base/text/text.h"
#include "commands/inspect/operator_text.h"
#include "common/standard_streams.h"

namespace heddle::tool {
namespace {

namespace fs = std::filesystem;

std::string name_of(const DescribedOperator& one) {
  return one.json["name"];
}

std::string folder_of(const DescribedOperator& one) {
  return one.schema->op->file ? fs::path(one.schema->op->file).parent_path().filename().string() : "";
}

// The page of each operator, without ".md".
std::map<const DescribedOperator*, std::string> pages_of(const std::vector<DescribedOperator>& operators) {
  std::map<std::string, std::set<std::string>> folders;  // by plugin
  for (const DescribedOperator& one : operators) folders[one.json["plugin"]].insert(folder_of(one));
  std::map<const DescribedOperator*, std::string> pages;
  for (const DescribedOperator& one : operators) {
    const std::string plugin = one.json["plugin"];
    pages[&one] = folders[plugin].size() > 1 && !folder_of(one).empty() ? folder_of(one) : plugin;
  }
  return pages;
}

// Text of a cell of a table.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '*' || c == '<') out += '\\';
    out += c;
  }
  return out;
}

// The place that a heading gets on a page: its letters and digits, in lower case.
std::string anchor(const std::string& heading) {
  std::string out;
  for (const char c : heading)
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string section(const DescribedOperator& one) {
  const std::string doc = one.json["doc"];
  std::string text = fmt::format("\n## {}\n\n{}\n", name_of(one), doc.empty() ? "Its plugin says nothing of it." : cell(doc)), examples;
  std::string rows = "\n| | | |\n| --- | --- | --- |\n";
  for (const OperatorPart& part : operator_parts(one.json, *one.schema)) {
    const std::string kind = part.kind;
    if (kind == "formula")
      text += fmt::format("\n```text\n{}\n```\n", part.text);
    else if (kind == "example")
      examples += fmt::format("{}\n", part.text);
    else if (kind == "pointwise" || kind == "file")
      rows += fmt::format("| {} |  | `{}` |\n", kind, part.text);
    else
      rows += fmt::format("| {} | {} | {} |\n", kind, part.name.empty() ? "" : fmt::format("`{}`", part.name), cell(part.text));
  }
  rows += fmt::format("| devices |  | {} (kernels of the plugin {}) |\n",
                      join(one.json["own_devices"].get<std::vector<std::string>>(), ", "), one.json["plugin"].get<std::string>());
  text += rows;
  if (!examples.empty()) text += fmt::format("\n```text\n{}```\n", examples);
  return text;
}

}  // namespace

Status write_operator_pages(const std::string& folder, const std::vector<DescribedOperator>& operators) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return {Code::file_unwritable, fmt::format("the folder {} can not be made: {}", quoted(folder), error.message()),
            "name a folder that can be written"};
  const auto pages = pages_of(operators);
  const std::string made = "<!-- made by `heddle op --pages`: do not edit -->\n";
  std::map<std::string, std::string> texts;
  std::string index = fmt::format("{}# Operators\n\n| operator | what it does | declared in |\n| --- | --- | --- |\n", made);
  for (const DescribedOperator& one : operators) {
    const std::string& page = pages.at(&one);
    auto& text = texts[page];
    if (text.empty()) text = fmt::format("{}# Operators: {}\n\nAll operators: [README.md](README.md).\n", made, page);
    text += section(one);
    index += fmt::format("| [{}]({}.md#{}) | {} | {} |\n", name_of(one), page, anchor(name_of(one)),
                         cell(first_sentence(one.json["doc"].get<std::string>())),
                         one.schema->op->file ? fmt::format("`{}`", one.schema->op->file) : "");
  }
  texts["README"] = index;
  for (const auto& [page, text] : texts) HEDDLE_CHECK(write_output((fs::path(folder) / (page + ".md")).string(), text));
  return {};
}

}  // namespace heddle::tool
