#include "generate/launch_plan.h"

#include "generate/texts.h"
#include "shared/scalar.h"

namespace heddle::cuda {

void KernelSource::use(const char* name) {
  const std::string_view content = texts().at(name);
  if (text.find(content) == std::string::npos) text += content;
}

plugin::Status Step::check() const {
  if (!overflows) return {};
  return plugin::unsupported("a kernel's parameters are more than the " + std::to_string(most_words) + " words and " +
                             std::to_string(most_addresses) + " addresses that there is room for");
}

plugin::Status LaunchPlan::check() const {
  if (overflows) return plugin::unsupported("it takes more than the " + std::to_string(most_steps) + " launches that there is room for");
  for (uint32_t i = 0; i < step_count; ++i) HEDDLE_PLUGIN_CHECK(steps[i].check());
  return {};
}

void ParameterWriter::address(const char* before, const char* type, const char* name, Address::Of of, uint32_t index, uint64_t offset) {
  if (text_) *text_ += std::string("  ") + before + type + "* " + name + ";\n";
  if (step_) place(of, index, offset);
}

void ParameterWriter::place(Address::Of of, uint32_t index, uint64_t offset) {
  step_->overflows = step_->overflows || step_->address_count == Step::most_addresses;
  if (step_->address_count < Step::most_addresses)
    step_->addresses[step_->address_count++] = {of, static_cast<uint16_t>(step_->word_count), index, offset};
  word(0);
}

void ParameterWriter::word(int64_t value) {
  step_->overflows = step_->overflows || step_->word_count == Step::most_words;
  if (step_->word_count < Step::most_words) step_->words[step_->word_count++] = value;
}

void ParameterWriter::random_state() {
  address("const ", "RunState", "state", Address::run_state, 0);
  if (text_) *text_ += "  i64 stream;\n";
  if (step_) place(Address::random_stream, 0, 0);
}

void ParameterWriter::address_of_many(const char* before, const char* type, const char* name, size_t number, Address::Of of,
                                      uint32_t index) {
  if (text_)
    address(before, type, (name + std::to_string(number)).c_str(), of, index);
  else
    address(before, type, name, of, index);
}

void ParameterWriter::number(const char* name, int64_t value) {
  if (text_) *text_ += std::string("  i64 ") + name + ";\n";
  if (step_) word(value);
}

void ParameterWriter::number(const char* name, double value) {
  if (text_) *text_ += std::string("  double ") + name + ";\n";
  if (step_) word(operators::bits_as<int64_t>(value));
}

void ParameterWriter::numbers(const char* name, const int64_t* values, int count) {
  if (text_) *text_ += std::string("  i64 ") + name + "[" + std::to_string(count) + "];\n";
  for (int i = 0; step_ && i < count; ++i) word(values[i]);
}

void ParameterWriter::numbers(const char* name, const double* values, int count) {
  if (text_) *text_ += std::string("  double ") + name + "[" + std::to_string(count) + "];\n";
  for (int i = 0; step_ && i < count; ++i) word(operators::bits_as<int64_t>(values[i]));
}

}  // namespace heddle::cuda
