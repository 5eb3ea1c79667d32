#include "options/option_flags.h"

#include <string>
#include <utility>

namespace heddle::tool {
namespace {

constexpr OptionFlag table[] = {
    {option_names::plugins, "--plugin"},
    {option_names::plugin_folders, "--plugin-dir"},
    {option_names::symbols, "--symbol", "N"},
    {option_names::automatic_copies, "--copies", "auto"},
    {option_names::memory_limit, "--memory-limit"},
    {option_names::limits, "--limit", "VALUE"},
    {option_names::input_shape, "--shape", "..."},
    {option_names::input_data, "--input", "FILE"},
    {option_names::max_bad_samples, "--skip-bad", "N"},
};

// Empty: the command line has no such option.
std::string flag_of(std::string_view option) {
  for (const OptionFlag& row : table) {
    std::string_view entry;
    if (!row.option.matches(option, &entry)) continue;
    std::string text(row.flag);
    if (row.option.of_entries) return text.append(" ").append(entry).append("=").append(row.value);
    return row.value.empty() ? text : text.append(" ").append(row.value);
  }
  return {};
}

}  // namespace

std::span<const OptionFlag> option_flags() {
  return table;
}

Diagnostic with_flags(Diagnostic diagnostic) {
  const std::string flag = flag_of(diagnostic.option);
  const size_t at = flag.empty() ? std::string::npos : diagnostic.hint.find(diagnostic.option);
  if (at != std::string::npos) diagnostic.hint.replace(at, diagnostic.option.size(), flag);
  for (Diagnostic& other : diagnostic.attached) other = with_flags(std::move(other));
  return diagnostic;
}

}  // namespace heddle::tool
