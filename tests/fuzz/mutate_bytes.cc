#include <algorithm>
#include <cctype>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "fuzz/mutate.h"
#include "load/header.h"
#include "load/save.h"

namespace heddle::fuzz {
namespace {

// Returns first byte and length of each number, string or word of a JSON text.
std::vector<std::pair<size_t, size_t>> tokens_of(std::string_view text) {
  std::vector<std::pair<size_t, size_t>> tokens;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      i = std::min(i + 1, text.size());
      tokens.emplace_back(begin, i - begin);
    } else if (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '-') {
      while (i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || std::strchr("+-.", text[i]))) ++i;
      tokens.emplace_back(begin, i - begin);
    } else {
      ++i;
    }
  }
  return tokens;
}

std::string new_token(const Material& material, Dice& dice) {
  static const char* const words[] = {"null", "true", "false", "\"f32\"", "\"i64\"", "\"bool\"",    "\"f16\"",     "\"\"", "1e999",
                                      "-0.0", "{}",   "[]",    "[[]]",    "\"nan\"", "\"\\u0000\"", "\"\\ud800\"", "0.5",  "{\"net\": {}}"};
  if (dice.one_in(4) && !material.operators.empty()) return '"' + dice.pick(material.operators)->name + '"';
  return dice.one_in(2) ? std::to_string(dice.integer()) : dice.pick(words);
}

}  // namespace

void mutate_text(Bytes& bytes, const Material& material, Dice& dice) {
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (size_t left = 1 + dice.below(4); left > 0; --left) {
    const auto tokens = tokens_of(text);
    if (tokens.empty()) break;
    const auto [at, length] = tokens[dice.below(tokens.size())];
    const auto [from, count] = tokens[dice.below(tokens.size())];
    text.replace(at, length, dice.one_in(2) ? text.substr(from, count) : new_token(material, dice));
  }
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  bytes.assign(first, first + text.size());
}

void mutate_bytes(Bytes& file, Dice& dice) {
  const size_t first = has_net_magic(file) && file.size() > net_header_bytes ? net_header_bytes : 0;
  for (size_t left = 1 + dice.below(4); left > 0 && file.size() > first + 16; --left) {
    static constexpr uint32_t words[] = {0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 4, 8};
    const uint32_t word = dice.pick(words);
    const size_t span = file.size() - first - 8;
    const size_t at = first + dice.below(span), from = first + dice.below(span);
    const auto begin = file.begin() + static_cast<std::ptrdiff_t>(at);
    switch (dice.below(6)) {
      case 0:
        file[at] ^= static_cast<std::byte>(1u << dice.below(8));
        break;
      case 1:
        file[at] = static_cast<std::byte>(dice.below(256));
        break;
      case 2:
        std::memcpy(&file[at & ~size_t{3}], &word, sizeof(word));
        break;
      case 3:
        std::memmove(&file[at], &file[from], 8);
        break;
      case 4:
        file.erase(begin, begin + static_cast<std::ptrdiff_t>(1 + dice.below(8)));
        break;
      default: {
        const Bytes stretch(begin, begin + static_cast<std::ptrdiff_t>(1 + dice.below(8)));
        file.insert(file.begin() + static_cast<std::ptrdiff_t>(from), stretch.begin(), stretch.end());
      }
    }
  }
}

void repair_header(Bytes& file) {
  if (!has_net_magic(file) || file.size() < net_header_bytes) return;
  const auto header = net_header(std::span<const std::byte>(file).subspan(net_header_bytes));
  std::copy(header.begin(), header.end(), file.begin());
}

Bytes make_case(const Material& material, Dice& dice) {
  Net net = dice.pick(material.seeds);
  const bool as_text = dice.one_in(4);
  const bool graph = !dice.one_in(4);
  // Not every mutated net can be written: the other mutators then start from the seed itself.
  const auto written = [&](const Net& n) -> Bytes {
    if (!as_text) {
      auto bytes = net_to_bytes(n);
      return bytes.ok() ? std::move(bytes).value() : Bytes();
    }
    const auto text = net_to_json(n);
    if (!text.ok()) return {};
    const auto* first = reinterpret_cast<const std::byte*>(text->data());
    return Bytes(first, first + text->size());
  };
  Bytes file;
  for (int attempt = 0; graph && file.empty() && attempt < 4; ++attempt) {
    Net changed = net;
    mutate_net(changed, material, dice);
    file = written(changed);
  }
  const bool changed = !file.empty();
  if (!changed) file = written(net);
  if (as_text && (!changed || dice.one_in(4))) mutate_text(file, material, dice);
  if (!as_text && (!changed || dice.one_in(8))) mutate_bytes(file, dice);
  if (as_text && dice.one_in(10)) mutate_bytes(file, dice);
  repair_header(file);
  return file;
}

}  // namespace heddle::fuzz
