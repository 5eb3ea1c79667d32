#include "rendezvous/key_text.h"

#include <sys/random.h>

#include <vector>

namespace heddle::rendezvous {

static void add_hexadecimal(unsigned char byte, std::string* text) {
  constexpr char digits[] = "0123456789abcdef";
  *text += digits[byte >> 4];
  *text += digits[byte & 15];
}

std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-') {
      text += c;
    } else {
      text += '%';
      add_hexadecimal(static_cast<unsigned char>(c), &text);
    }
  }
  return text.empty() ? "%" : text;
}

std::string random_digits(size_t bytes) {
  std::vector<unsigned char> random(bytes);
  for (size_t have = 0; have < bytes;) {
    const ssize_t got = ::getrandom(random.data() + have, bytes - have, 0);  // interrupted by a signal only before the machine has any
    if (got > 0) have += static_cast<size_t>(got);
  }
  std::string text;
  for (const unsigned char byte : random) add_hexadecimal(byte, &text);
  return text;
}

}  // namespace heddle::rendezvous
