#include "generate/launch_plan.h"

#include "generate/texts.h"
#include "shared/scalar.h"

namespace heddle::cuda {

void KernelSource::use(const char* name) {
  const std::string_view content = texts().at(name);
  if (text.find(content) == std::string::npos) text += content;
}

plugin::Status Launch::check() const {
  if (!overflows) return {};
  return plugin::unsupported("a kernel's parameters are more than the " + std::to_string(max_words) + " words and " +
                             std::to_string(max_addresses) + " addresses that there is room for");
}

plugin::Status LaunchPlan::check() const {
  if (overflows) return plugin::unsupported("it takes more than the " + std::to_string(max_launches) + " launches that there is room for");
  for (uint32_t i = 0; i < launch_count; ++i) HEDDLE_PLUGIN_CHECK(launches[i].check());
  return {};
}

void ParameterWriter::address(const char* before, const char* type, const char* name, Address::Of of, uint32_t index, uint64_t offset) {
  if (text_) *text_ += std::string("  ") + before + type + "* " + name + ";\n";
  if (launch_) place(of, index, offset);
}

void ParameterWriter::place(Address::Of of, uint32_t index, uint64_t offset) {
  launch_->overflows = launch_->overflows || launch_->address_count == Launch::max_addresses;
  if (launch_->address_count < Launch::max_addresses)
    launch_->addresses[launch_->address_count++] = {of, static_cast<uint16_t>(launch_->word_count), index, offset};
  word(0);
}

void ParameterWriter::word(int64_t value) {
  launch_->overflows = launch_->overflows || launch_->word_count == Launch::max_words;
  if (launch_->word_count < Launch::max_words) launch_->words[launch_->word_count++] = value;
}

void ParameterWriter::random_state() {
  address("const ", "RunState", "state", Address::run_state, 0);
  if (text_) *text_ += "  i64 stream;\n";
  if (launch_) place(Address::random_stream, 0, 0);
  if (text_) *text_ += "  i64 random_first;\n";
  if (launch_) place(Address::random_first, 0, 0);
}

void ParameterWriter::fault() {
  address("", "Fault", "fault", Address::fault, 0);
  if (text_) *text_ += "  i64 fault_mark;\n";
  if (launch_) place(Address::fault_mark, 0, 0);
}

void ParameterWriter::holds() {
  address("const ", "u64", "holds", Address::holds, 0);
  if (text_) *text_ += "  i64 hold_count;\n";
  if (launch_) place(Address::hold_count, 0, 0);
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
  if (launch_) word(value);
}

void ParameterWriter::number(const char* name, double value) {
  if (text_) *text_ += std::string("  double ") + name + ";\n";
  if (launch_) word(operators::bits_as<int64_t>(value));
}

void ParameterWriter::numbers(const char* name, const int64_t* values, int count) {
  if (text_) *text_ += std::string("  i64 ") + name + "[" + std::to_string(count) + "];\n";
  for (int i = 0; launch_ && i < count; ++i) word(values[i]);
}

void ParameterWriter::numbers(const char* name, const double* values, int count) {
  if (text_) *text_ += std::string("  double ") + name + "[" + std::to_string(count) + "];\n";
  for (int i = 0; launch_ && i < count; ++i) word(operators::bits_as<int64_t>(values[i]));
}

}  // namespace heddle::cuda
