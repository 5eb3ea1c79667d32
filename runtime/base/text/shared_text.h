// SharedText: an immutable text that has many equal copies, like the type of an operator or the name of a symbol. Copies share one
// allocation and take the room of a pointer.
#pragma once

#include <fmt/format.h>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>
#include <concepts>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace heddle {

// Reads as a `const std::string&` that lives as long as any copy. Thread-safe like a std::string; copies are independent of each other.
class SharedText {
 public:
  SharedText() noexcept = default;
  SharedText(std::string text) : text_(text.empty() ? nullptr : new Counted(std::move(text))) {}  // NOLINT: implicit on purpose
  SharedText(std::string_view text) : SharedText(std::string(text)) {}                            // NOLINT: likewise
  SharedText(const char* text) : SharedText(std::string(text)) {}                                 // NOLINT: likewise

  const std::string& text() const noexcept { return text_ ? text_->text : none(); }
  operator const std::string&() const noexcept { return text(); }  // NOLINT: implicit on purpose
  operator std::string_view() const noexcept { return text(); }    // NOLINT: likewise
  bool empty() const noexcept { return !text_; }
  size_t size() const noexcept { return text().size(); }
  const char* c_str() const noexcept { return text().c_str(); }

  friend bool operator==(const SharedText& a, const SharedText& b) noexcept { return a.text_ == b.text_ || a.text() == b.text(); }
  template <class T>
  requires(!std::same_as<T, SharedText> && std::convertible_to<const T&, std::string_view>) friend bool operator==(const SharedText& a,
                                                                                                                   const T& b) noexcept {
    return a.text() == std::string_view(b);
  }
  friend std::ostream& operator<<(std::ostream& out, const SharedText& text) { return out << text.text(); }
  friend bool operator<(const SharedText& a, const SharedText& b) noexcept { return a.text() < b.text(); }

 private:
  struct Counted : boost::intrusive_ref_counter<Counted, boost::thread_safe_counter> {
    explicit Counted(std::string of) : text(std::move(of)) {}
    const std::string text;
  };
  static const std::string& none() noexcept {
    static const std::string value;
    return value;
  }
  boost::intrusive_ptr<const Counted> text_;
};

}  // namespace heddle

template <>
struct fmt::formatter<heddle::SharedText> : fmt::formatter<std::string_view> {
  template <class FormatContext>
  auto format(const heddle::SharedText& text, FormatContext& context) const {
    return fmt::formatter<std::string_view>::format(std::string_view(text), context);
  }
};
