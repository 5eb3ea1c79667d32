// The names, in the public headers, of the options that hints recommend. A Diagnostic carries the name in `option` too, so that a program
// with a language of its own (the tool: flags) can put its own word in the name's place.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "heddle/status.h"

namespace heddle {

// The name of one option. For one entry of many, the entry's own name goes between `begin` and `end`: SessionOptions::symbols["N"].
struct OptionName {
  std::string_view begin;
  std::string_view end = {};
  bool of_entries = false;

  // Returns the name of one of the entries; for an option without entries `begin`, whatever is given.
  std::string text(std::string_view entry = {}) const {
    std::string name(begin);
    if (of_entries) name.append(entry).append(end);
    return name;
  }
  // True if `name` is such a name; `*entry` is then the entry's own.
  bool matches(std::string_view name, std::string_view* entry) const {
    *entry = {};
    if (!of_entries) return name == begin;
    if (name.size() < begin.size() + end.size() || !name.starts_with(begin) || !name.ends_with(end)) return false;
    *entry = name.substr(begin.size(), name.size() - begin.size() - end.size());
    return true;
  }
};

namespace option_names {
inline constexpr OptionName plugins{"RuntimeOptions::plugins"};
inline constexpr OptionName plugin_folders{"RuntimeOptions::plugin_folders"};
inline constexpr OptionName symbols{"SessionOptions::symbols[\"", "\"]", true};
inline constexpr OptionName automatic_copies{"SessionOptions::copies = Copies::automatic"};
inline constexpr OptionName memory_limit{"SessionOptions::memory_limit"};
inline constexpr OptionName limits{"SessionOptions::limits.", "", true};
inline constexpr OptionName input_shape{"Session::prepare(inputs[\"", "\"].shape)", true};
inline constexpr OptionName input_data{"Session::prepare(inputs[\"", "\"].data)", true};
inline constexpr OptionName max_bad_samples{"TrainerOptions::max_bad_samples"};

inline constexpr const OptionName* all[] = {&plugins, &plugin_folders, &symbols,    &automatic_copies, &memory_limit,
                                            &limits,  &input_shape,    &input_data, &max_bad_samples};
}  // namespace option_names

// Returns the hint "`before`NAME`after`" about the option of that name.
inline Hint hint_with(std::string before, std::string name, const std::string& after = {}) {
  Hint hint(std::move(before));
  hint.text += name + after;
  hint.option = std::move(name);
  return hint;
}
inline Hint hint_with(std::string before, const OptionName& name, const std::string& after = {}) {
  return hint_with(std::move(before), name.text(), after);
}

}  // namespace heddle
