#include "commands/train/data/training_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/text/text.h"
#include "commands/train/data/array_column.h"
#include "commands/train/data/picture_column.h"
#include "commands/train/data/ragged_column.h"
#include "commands/train/data/token_column.h"
#include "tensors/convert.h"
#include "tensors/csv.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

constexpr std::string_view class_suffix = ":class";

bool is_synthetic(const std::vector<std::string>& specs) {
  return specs.size() == 1 && specs[0] == "synthetic";
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

// Splits "FILE:+1", "FOLDER:class" and "FILE.csv:COLUMN" into the file, the shift of tokens, and whether it is the class that is wanted.
std::tuple<std::string, std::optional<int64_t>, bool> parts_of(const std::string& text) {
  const size_t at = text.rfind(":+");
  int64_t shift = 0;
  if (at != std::string::npos && parse_int(std::string_view(text).substr(at + 2), &shift) && shift >= 0)
    return {text.substr(0, at), shift, false};
  if (text.ends_with(".txt")) return {text, 0, false};
  if (text.ends_with(class_suffix) && is_folder(text.substr(0, text.size() - class_suffix.size())))
    return {text.substr(0, text.size() - class_suffix.size()), std::nullopt, true};
  return {file_of_tensor(text), std::nullopt, false};
}

std::string csv_column_name(const std::string& text) {
  const std::string file = file_of_tensor(text);
  return file.size() < text.size() ? text.substr(file.size() + 1) : "";
}

// Returns what a hint names for an input that is given nothing.
std::string example_for(const PortInfo& input, const std::vector<NameValue>& given) {
  if (takes_whole(input.dtype))
    for (const NameValue& value : given)
      if (is_folder(value.second)) return value.second + std::string(class_suffix);
  return "FILE.npy";
}

const std::string* value_of(const std::vector<NameValue>& given, const std::string& name) {
  const auto found = std::find_if(given.begin(), given.end(), [&](const NameValue& v) { return v.first == name; });
  return found == given.end() ? nullptr : &found->second;
}

}  // namespace

// One input with the file that is given for it.
struct TrainingData::Source {
  std::string option;
  const PortInfo* input = nullptr;
  std::string text, file;  // the file or folder without what follows it
  bool tests = false, shows_class = false;
  std::optional<int64_t> shift;  // of tokens
  std::string ragged_by;         // the input whose offsets say which values belong to a sample
  bool is_offsets = false;
};

Result<const PictureFiles*> TrainingData::pictures_of(const std::string& folder) {
  const auto [at, is_new] = folders_.try_emplace(folder);
  if (is_new) {
    auto found = pictures_of_folder(folder);
    if (!found.ok()) folders_.erase(at);
    HEDDLE_CHECK(found.status());
    at->second = std::move(*found);
  }
  return &at->second;
}

Result<std::shared_ptr<const SampleColumn>> TrainingData::column_of_classes(const Source& source, std::vector<std::string> texts) {
  auto known = classes_.find(source.input->name);
  if (source.tests && known == classes_.end())
    return Status(
        Code::invalid_argument,
        fmt::format("{}: {} has texts, and the data that are trained with have numbers for this input", source.option, quoted(source.file)),
        "give classes for both, or numbers for both");
  if (known == classes_.end()) known = classes_.emplace(source.input->name, ClassNames::of(texts)).first;
  HEDDLE_TRY(auto numbers, known->second.numbers(source.option, *source.input, texts));
  return array_column(source.option, *source.input, std::move(numbers), fmt::format("classes {}", fmt::join(known->second.names(), "\n")));
}

Result<std::shared_ptr<const SampleColumn>> TrainingData::column_of_pictures(const Source& source) {
  PictureFiles listed;
  if (is_folder(source.file)) {
    HEDDLE_TRY(const PictureFiles* const found, pictures_of(source.file), source.option);
    if (source.shows_class && found->classes.empty())
      return Status(Code::invalid_argument, fmt::format("{}: the pictures of {} are in no folders", source.option, quoted(source.file)),
                    "put the pictures of each class in a folder, whose name is the class");
    if (source.shows_class) return column_of_classes(source, found->classes);
    listed = *found;
  } else {
    HEDDLE_TRY(listed, pictures_of_list(source.file, csv_column_name(source.text), limits_), source.option);
  }
  if (!takes_pictures(*source.input))
    return Status(Code::shape_mismatch,
                  fmt::format("{}: the input is {}{}, and pictures are f32 [batch, 3, height, width], or 1 for grey", source.option,
                              to_string(source.input->dtype), source.input->shape.text()),
                  takes_whole(source.input->dtype)
                      ? fmt::format("for the classes of the pictures write {}={}:class", source.input->name, source.file)
                      : "give an input of fixed height and width pictures");
  pictures_.insert(pictures_.end(), listed.paths.begin(), listed.paths.end());
  HEDDLE_TRY(const PictureNumbers numbers, flags_.numbers(source.input->shape[1]));
  HEDDLE_TRY(const PictureChanges changes, flags_.changes());
  return picture_column(*source.input, std::move(listed.paths), numbers, source.tests ? PictureChanges() : changes);
}

Result<std::shared_ptr<const SampleColumn>> TrainingData::column(const Source& source) {
  if (source.shift) {
    HEDDLE_TRY(auto tokens, read_tokens(source.option, source.file, limits_));
    return token_column(source.option, *source.input, std::move(tokens), *source.shift, max_shift_);
  }
  if (is_folder(source.file) || (is_csv(source.text) && takes_pictures(*source.input) && !csv_column_name(source.text).empty()))
    return column_of_pictures(source);
  if (is_csv(source.text) && takes_whole(source.input->dtype) && !csv_column_name(source.text).empty() &&
      csv_column_name(source.text).find(',') == std::string::npos) {
    HEDDLE_TRY(std::vector<std::string> texts, read_csv_column(source.file, csv_column_name(source.text), limits_), source.option);
    const bool were_texts = classes_.count(source.input->name) > 0;
    if (were_texts || !all_are_numbers(texts)) return column_of_classes(source, std::move(texts));
  }
  const bool names_folder = std::filesystem::path(source.file).extension().empty() || source.text.ends_with(class_suffix);
  if (std::error_code error; names_folder && !std::filesystem::exists(source.file, error))
    return Status(Code::file_not_found, fmt::format("{}: there is no folder or file {}", source.option, quoted(source.text)),
                  "check the path");
  HEDDLE_TRY(auto array, read_array(source.option, *source.input, source.text, limits_));
  return array_column(source.option, *source.input, std::move(array));
}

// Adds the inputs of --ragged, which belong together, after all others: these say how many samples there are.
Status TrainingData::add_ragged(const std::vector<Source>& sources, std::vector<NamedColumn>* columns) {
  for (const Source& source : sources) {
    if (source.ragged_by.empty()) continue;
    const auto of = std::find_if(sources.begin(), sources.end(), [&](const Source& s) { return s.input->name == source.ragged_by; });
    HEDDLE_TRY(auto values, read_array(source.option, *source.input, source.text, limits_));
    if (values->shape.rank() < 1)
      return {Code::shape_mismatch, fmt::format("{}: the values of {} have no axis", source.option, quoted(source.input->name)),
              "give all values of all samples, one after the other"};
    HEDDLE_CHECK(array_column(source.option, *source.input, values).status());
    HEDDLE_TRY(auto offsets, read_array(of->option, *of->input, of->text, limits_));
    int64_t samples = -1;
    for (const NamedColumn& named : *columns)
      if (named.input != of->input->name) samples = named.column->samples();
    HEDDLE_TRY(auto checked, sample_offsets(of->option, of->input->name, std::move(offsets), values->shape[0], samples));
    if (std::none_of(columns->begin(), columns->end(), [&](const NamedColumn& named) { return named.input == of->input->name; }))
      columns->push_back({of->input->name, offsets_column(checked)});
    columns->push_back({source.input->name, ragged_column(std::move(values), checked)});
  }
  return {};
}

Status TrainingData::synthesize(const std::string& option, const std::vector<PortInfo>& inputs, uint64_t seed,
                                std::vector<NamedColumn>* columns) {
  for (const PortInfo& input : inputs) {
    HEDDLE_TRY(auto array, synthetic_array(option, input, flags_.samples, seed + columns->size()));
    HEDDLE_TRY(auto made, array_column(option, input, std::move(array)));
    columns->push_back({input.name, std::move(made)});
  }
  return {};
}

// Finds what is given for each input, in their order.
Result<std::vector<TrainingData::Source>> TrainingData::sources_of(bool tests, const std::vector<PortInfo>& inputs) const {
  const std::string option = tests ? "--test-data" : "--data";
  HEDDLE_TRY(const std::vector<NameValue> given, split_name_values(option, tests ? flags_.test_data : flags_.data));
  HEDDLE_TRY(const std::vector<NameValue> ragged, split_name_values("--ragged", flags_.ragged));
  const auto check = [&](const std::string& by, const std::string& name) -> Status {
    if (std::any_of(inputs.begin(), inputs.end(), [&](const PortInfo& p) { return p.name == name; })) return {};
    return {Code::unknown_name, fmt::format("{}: the net has no input {}", by, quoted(name)), "see heddle inspect"};
  };
  for (const NameValue& value : given) HEDDLE_CHECK(check(option, value.first));
  for (const auto& [values, offsets] : ragged) {
    HEDDLE_CHECK(check("--ragged", values));
    HEDDLE_CHECK(check("--ragged", offsets));
    if (value_of(ragged, offsets))
      return Status(Code::invalid_argument, fmt::format("--ragged: {} is to be offsets, and values too", quoted(offsets)),
                    "name an input of values and one of offsets");
  }
  std::vector<Source> sources;
  for (const PortInfo& input : inputs) {
    const std::string* const text = value_of(given, input.name);
    if (!text)
      return Status(Code::missing_input, fmt::format("{}: nothing was given for input {}", option, quoted(input.name)),
                    fmt::format("add {} {}={}", option, input.name, example_for(input, given)));
    Source source;
    source.option = fmt::format("{} {}", option, input.name);
    source.input = &input;
    source.text = *text;
    source.tests = tests;
    std::tie(source.file, source.shift, source.shows_class) = parts_of(*text);
    if (const std::string* const by = value_of(ragged, input.name)) source.ragged_by = *by;
    source.is_offsets = std::any_of(ragged.begin(), ragged.end(), [&](const NameValue& v) { return v.second == input.name; });
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<std::shared_ptr<const Dataset>> TrainingData::read(bool tests, const std::vector<PortInfo>& inputs, uint64_t seed) {
  const std::string option = tests ? "--test-data" : "--data";
  std::vector<NamedColumn> columns;
  HEDDLE_CHECK(flags_.changes().status());
  HEDDLE_CHECK(flags_.numbers(3).status());
  if (is_synthetic(tests ? flags_.test_data : flags_.data)) {
    if (!flags_.ragged.empty()) return Status(Code::invalid_argument, "--ragged: synthetic data are not ragged", "give files");
    HEDDLE_CHECK(synthesize(option, inputs, seed, &columns));
    return dataset_of(option, std::move(columns));
  }
  HEDDLE_TRY(const std::vector<Source> sources, sources_of(tests, inputs));
  max_shift_ = 0;
  for (const Source& source : sources) max_shift_ = std::max(max_shift_, source.shift.value_or(0));
  for (const Source& source : sources) {
    if (!source.ragged_by.empty() || source.is_offsets) continue;
    HEDDLE_TRY(auto made, column(source));
    columns.push_back({source.input->name, std::move(made)});
  }
  HEDDLE_CHECK(add_ragged(sources, &columns));
  if (!tests) HEDDLE_CHECK(check_pictures(columns));
  return dataset_of(option, std::move(columns));
}

// Refuses options of pictures where there are none.
Status TrainingData::check_pictures(const std::vector<NamedColumn>& columns) const {
  if (std::any_of(columns.begin(), columns.end(), [](const NamedColumn& named) { return !named.column->is_in_memory(); })) return {};
  const char* const option = !flags_.augment.empty() ? "--augment" : !flags_.normalize.empty() ? "--normalize" : nullptr;
  if (!option) return {};
  return {Code::invalid_argument, fmt::format("{}: no input is given pictures", option),
          "leave it out, or name a folder or a list of pictures"};
}

std::vector<std::string> files_of(const std::vector<std::string>& specs) {
  std::vector<std::string> names;
  if (is_synthetic(specs)) return names;
  const auto given = split_name_values("--data", specs);
  for (size_t i = 0; given.ok() && i < given->size(); ++i) names.push_back(std::get<0>(parts_of((*given)[i].second)));
  return names;
}

}  // namespace heddle::tool
