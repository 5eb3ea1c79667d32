// Numbers in the texts of expressions (expression.h). A number is read as the nearest double, and printed as the shortest text that is read
// as the same bits; neither depends on the host's locale.
//
// Uses <charconv> if the standard library has all of it (libc++ before 20 can not read numbers with it), and otherwise POSIX functions in
// the locale "C", which give the same results. HEDDLE_EXPRESSION_WITHOUT_CHARCONV, defined for a whole program, selects the POSIX functions
// in any case: tests compare the two.
#pragma once

#include <charconv>
#include <cmath>
#include <string>

#if defined(__cpp_lib_to_chars) && !defined(HEDDLE_EXPRESSION_WITHOUT_CHARCONV)
#define HEDDLE_EXPRESSION_CHARCONV_ 1
#else
#define HEDDLE_EXPRESSION_CHARCONV_ 0
#include <locale.h>  // POSIX's newlocale, which <clocale> need not have

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#endif

namespace heddle {
namespace expression {
namespace detail {

// Independent of the host's locale, unlike <cctype>.
inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Returns the end of the number that begins at `p`: digits with at most one point among them, and an exponent. Returns `p` if there is
// none.
inline const char* number_end(const char* p) {
  const char* const begin = p;
  int digits = 0;
  for (bool point = false; is_digit(*p) || (*p == '.' && !point); ++p) {
    point = point || *p == '.';
    digits += *p != '.';
  }
  if (digits == 0) return begin;
  if (*p != 'e' && *p != 'E') return p;
  const char* exponent = p + 1;
  if (*exponent == '+' || *exponent == '-') ++exponent;
  if (!is_digit(*exponent)) return p;
  while (is_digit(*exponent)) ++exponent;
  return exponent;
}

#if HEDDLE_EXPRESSION_CHARCONV_

inline double nearest_number(const char* begin, const char* end) {
  double value = 0;
  std::from_chars(begin, end, value);
  return value;
}

inline std::string print_number(double finite) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), finite).ptr};
}

#else

// Sets the locale "C" for the calling thread as long as the object lives.
class ClassicLocale {
 public:
  ClassicLocale() : classic_(newlocale(LC_ALL_MASK, "C", static_cast<locale_t>(nullptr))) {
    if (!classic_) std::abort();  // newlocale can fail only for lack of memory, because the locale "C" is always available
    before_ = uselocale(classic_);
  }
  ~ClassicLocale() {
    uselocale(before_);
    freelocale(classic_);
  }
  ClassicLocale(const ClassicLocale&) = delete;
  ClassicLocale& operator=(const ClassicLocale&) = delete;

 private:
  locale_t classic_, before_;
};

inline double nearest_number(const char* begin, const char* end) {
  const ClassicLocale here;
  return std::strtod(std::string(begin, end).c_str(), nullptr);
}

// Adds one to the last place of "1.23e+45"; returns false if all its digits are nines.
inline bool count_up(std::string& scientific) {
  for (size_t at = scientific.find('e'); at-- > 0;) {
    char& digit = scientific[at];
    if (!is_digit(digit)) continue;
    digit = digit == '9' ? '0' : static_cast<char>(digit + 1);
    if (digit != '0') return true;
  }
  return false;
}

// Returns the text with the fewest digits that is read as `value`, in the form "1.23e+45". Of several such texts it returns the one whose
// number is nearest to `value`.
inline std::string fewest_digits(double value) {
  char buffer[40];
  for (int places = 0;; ++places) {
    std::string text(buffer, static_cast<size_t>(std::snprintf(buffer, sizeof(buffer), "%.*e", places, value)));
    if (std::strtod(text.c_str(), nullptr) == value) return text;
    // At a power of two, the doubles above are farther apart than those below. A text slightly below `value` may therefore be read as
    // another double, while the next text, which is farther away but above, is read as `value`.
    if (count_up(text) && std::strtod(text.c_str(), nullptr) == value) return text;
  }
}

// Prints with or without an exponent, whichever is shorter, like std::to_chars.
inline std::string print_number(double finite) {
  const ClassicLocale here;
  const std::string scientific = fewest_digits(std::fabs(finite));
  const size_t e = scientific.find('e');
  const int digits = static_cast<int>(e == 1 ? e : e - 1), exponent = std::atoi(scientific.c_str() + e + 1);
  const int plain = exponent < 0 ? digits + 1 - exponent : (digits > exponent + 1 ? digits + 1 : exponent + 1);
  const std::string sign = std::signbit(finite) ? "-" : "";
  if (plain > static_cast<int>(scientific.size())) return sign + scientific;
  char buffer[40];
  const int places = std::max(0, digits - 1 - exponent);
  return sign + std::string(buffer, static_cast<size_t>(std::snprintf(buffer, sizeof(buffer), "%.*f", places, std::fabs(finite))));
}

#endif

// Reads a number that extends over all of [begin, end). Returns false if the number is out of the range of a double.
inline bool read_number(const char* begin, const char* end, double& value) {
  value = nearest_number(begin, end);
  bool zero = true;
  for (const char* p = begin; p != end && *p != 'e' && *p != 'E'; ++p) zero = zero && (*p == '0' || *p == '.');
  return zero || (value != 0 && !std::isinf(value));
}

}  // namespace detail
}  // namespace expression
}  // namespace heddle
