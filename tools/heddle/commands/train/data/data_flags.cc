#include "commands/train/data/data_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <string_view>

#include "base/text/text.h"
#include "common/command.h"

namespace heddle::tool {
namespace {

bool parse_float(std::string_view text, float* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// Reads "0.5,0.5,0.5".
bool parse_floats(std::string_view text, std::vector<float>* numbers) {
  while (true) {
    const size_t end = std::min(text.find(','), text.size());
    float number = 0;
    if (!parse_float(text.substr(0, end), &number)) return false;
    numbers->push_back(number);
    if (end == text.size()) return true;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

void DataFlags::declare(CLI::App& app) {
  app.add_option("--data", data,
                 "for each input: an array (samples along its first axis); FILE.csv:a,b; pictures, FOLDER or LIST.csv:COLUMN; classes, "
                 "FOLDER:class or LIST.csv:COLUMN; tokens, FILE:+0 or FILE.txt; or \"synthetic\"")
      ->required()
      ->type_name("NAME=WHAT");
  app.add_option("--test-data", test_data, "the same for the test net")->type_name("NAME=WHAT");
  app.add_option("--samples", samples, "of synthetic data")->check(whole_number(INT64_MAX, 1))->capture_default_str();
  app.add_option("--ragged", ragged, "VALUES has another number of values for each sample; OFFSETS says where those of each begin")
      ->type_name("VALUES=OFFSETS");
  app.add_option("--augment", augment, "random changes of pictures to train with: crop, flip, color=0.4")
      ->delimiter(',')
      ->type_name("CHANGE");
  app.add_option("--normalize", normalize,
                 "what pictures become: imagenet, none (0 to 1), or means and deviations, 0.5,0.5,0.5/0.2,0.2,0.2")
      ->type_name("NUMBERS");
  constexpr int max_readers = 64;  // as many as the trainer has
  app.add_option("--readers", readers, "threads that read pictures ahead of the steps; 0: the one that trains")
      ->check(whole_number(max_readers))
      ->capture_default_str();
  app.add_option("--skip-bad", skip_bad,
                 "how many samples that can not be read are left out, each with a warning; else the first is an error")
      ->type_name("N")
      ->check(whole_number(INT64_MAX));
}

bool DataFlags::are_offsets(const std::string& input) const {
  return std::any_of(ragged.begin(), ragged.end(), [&](const std::string& pair) { return pair.ends_with("=" + input); });
}

bool DataFlags::is_ragged(const std::string& input) const {
  return are_offsets(input) ||
         std::any_of(ragged.begin(), ragged.end(), [&](const std::string& pair) { return pair.starts_with(input + "="); });
}

Result<PictureChanges> DataFlags::changes() const {
  PictureChanges made;
  for (const std::string& text : augment) {
    constexpr std::string_view color = "color=";
    if (text == "crop")
      made.crop = true;
    else if (text == "flip")
      made.flip = true;
    else if (!text.starts_with(color) || !parse_float(std::string_view(text).substr(color.size()), &made.color) ||
             !(made.color > 0 && made.color <= 1))
      return Status(Code::invalid_argument, fmt::format("--augment {}: there is no such change", quoted(text)),
                    "write crop, flip or color=0.4, a number up to 1");
  }
  return made;
}

Result<PictureNumbers> DataFlags::numbers(int64_t channels) const {
  if (normalize.empty()) return usual_numbers(channels);
  if (normalize == "imagenet") return usual_numbers(3);
  if (normalize == "none") return PictureNumbers{{0}, {1}};
  PictureNumbers made;
  const size_t slash = normalize.find('/');
  if (slash == std::string::npos || !parse_floats(std::string_view(normalize).substr(0, slash), &made.means) ||
      !parse_floats(std::string_view(normalize).substr(slash + 1), &made.deviations))
    return Status(Code::invalid_argument, fmt::format("--normalize {}: it is no means and deviations", quoted(normalize)),
                  "write imagenet, none, or numbers as in 0.5,0.5,0.5/0.2,0.2,0.2");
  return made;
}

}  // namespace heddle::tool
