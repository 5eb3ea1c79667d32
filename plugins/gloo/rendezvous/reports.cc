#include "rendezvous/reports.h"

#include <charconv>
#include <utility>

namespace heddle::rendezvous {

namespace {

// FNV-1a of 64 bits: it is for accidents, not for attacks.
std::string checksum(std::string_view text) {
  uint64_t sum = 14695981039346656037u;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211u;
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(sum >> shift) & 15];
  return digits;
}

// Takes numbers, each with a space after it, and texts of a known size off a text.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}
  template <class T>
  bool number(T* number) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *number);
    const auto size = static_cast<size_t>(end - rest_.data());
    if (error != std::errc() || size == rest_.size() || rest_[size] != ' ') return false;
    rest_ = rest_.substr(size + 1);
    return true;
  }
  bool text(std::string* text) {
    size_t size = 0;
    if (!number(&size) || size > rest_.size()) return false;
    *text = rest_.substr(0, size);
    rest_ = rest_.substr(size);
    return true;
  }
  size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
};

std::string key_of(const std::string& attempt) {
  return "report/" + attempt;
}

}  // namespace

std::string encode(const Report& report) {
  std::string text =
      std::to_string(report.number) + " " + std::to_string(report.exchanges) + " " + std::to_string(report.missing.size()) + " ";
  for (const int32_t rank : report.missing) text += std::to_string(rank) + " ";
  for (const std::string* one : {&report.collective, &report.reason, &report.exchanged}) text += std::to_string(one->size()) + " " + *one;
  return checksum(text) + text;
}

bool decode(std::string_view text, Report* report) {
  constexpr size_t sum_size = 16;
  if (text.size() < sum_size || checksum(text.substr(sum_size)) != text.substr(0, sum_size)) return false;
  Parser parser(text.substr(sum_size));
  Report read;
  size_t missing = 0;
  if (!parser.number(&read.number) || !parser.number(&read.exchanges) || !parser.number(&missing) || missing > parser.left()) return false;
  read.missing.resize(missing);
  for (int32_t& rank : read.missing)
    if (!parser.number(&rank)) return false;
  if (!parser.text(&read.collective) || !parser.text(&read.reason) || !parser.text(&read.exchanged) || parser.left() > 0) return false;
  *report = std::move(read);
  return true;
}

Status report(Store& store, const std::string& attempt, int32_t rank, const Report& report) {
  bool written = false;
  return store.set({rank, key_of(attempt)}, encode(report), &written);
}

Status read_reports(Store& store, const std::string& attempt, int32_t ranks, std::vector<std::optional<Report>>* reports) {
  reports->resize(static_cast<size_t>(ranks));
  for (int32_t rank = 0; rank < ranks; ++rank) {
    std::optional<Report>& one = (*reports)[static_cast<size_t>(rank)];
    if (one) continue;
    std::string text;
    bool found = false;
    HEDDLE_PLUGIN_CHECK(store.get({rank, key_of(attempt)}, &text, &found));
    if (!found) continue;
    one.emplace();
    if (!decode(text, &*one)) one->reason = "its report is damaged";
  }
  return {};
}

}  // namespace heddle::rendezvous
