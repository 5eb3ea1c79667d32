// Pointwise expressions: the small language in which operators declare what they do to one element.
//
//   "max(x, 0)"      "t = x + y; t * sigmoid(t)"      "select(lt(x, 0), alpha * x, x)"
//
// A text has any number of statements "name = expression;" and then one result expression. A name is that of an input, of an attribute
// (which the host binds to a number) or of an earlier statement. Expressions have infix + - * /, unary -, parentheses, numbers, and the
// functions in expression_opcodes.h. A text is parsed once, into a flat program. Fusion composes such programs, and kernels interpret them
// block by block. Header-only, C++17; used by the runtime and by kernels. An object is not thread-safe.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/expression_numbers.h"
#include "heddle/expression_opcodes.h"

namespace heddle {
namespace expression {

struct Instruction {
  Opcode op = Opcode::constant;
  int32_t a = -1, b = -1, c = -1;  // indices of earlier instructions; for Opcode::input: a is the index of the input
  double literal = 0;
};

// Instructions in dependency order; the last one is the result.
struct Program {
  std::vector<std::string> inputs;
  std::vector<Instruction> code;

  int push(Instruction i) {
    // Equal instructions are stored once: this keeps composed programs small.
    for (size_t k = 0; k < code.size(); ++k) {
      const Instruction& o = code[k];
      const bool same_bits = std::memcmp(&o.literal, &i.literal, sizeof(double)) == 0;  // NOLINT: -0 is not 0 here
      if (o.op == i.op && o.a == i.a && o.b == i.b && o.c == i.c && same_bits) return static_cast<int>(k);
    }
    code.push_back(i);
    return static_cast<int>(code.size()) - 1;
  }
  int input(std::string_view name) {
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] == name) return push({Opcode::input, static_cast<int32_t>(i), -1, -1, 0});
    inputs.emplace_back(name);
    return push({Opcode::input, static_cast<int32_t>(inputs.size()) - 1, -1, -1, 0});
  }
};

// Names, and the numbers that take their place.
using Constants = std::vector<std::pair<std::string, double>>;

namespace detail {

inline bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
inline bool is_of_name(char c) {
  return begins_name(c) || is_digit(c);
}

class Parser {
 public:
  Parser(const std::string& text, const Constants& constants, Program& program)
      : p_(text.c_str()), constants_(constants), program_(program) {}

  bool parse(std::string& error) {
    int result = -1;
    for (;;) {
      skip();
      if (!*p_) break;
      const char* start = p_;
      const std::string_view name = identifier();
      skip();
      if (!name.empty() && *p_ == '=') {
        ++p_;
        const int v = sum();
        if (v >= 0) names_.emplace_back(name, v);
      } else {
        p_ = start;
        result = sum();
      }
      if (!error_.empty()) break;
      skip();
      if (*p_ == ';') {
        ++p_;
        continue;
      }
      if (*p_) error_ = std::string("unexpected '") + *p_ + "'";
      break;
    }
    if (error_.empty() && result < 0) error_ = "no result expression";
    if (error_.empty() && result != static_cast<int>(program_.code.size()) - 1) move_to_end(result);
    error = error_;
    return error_.empty();
  }

 private:
  void skip() {
    while (*p_ == ' ' || (*p_ >= '\t' && *p_ <= '\r')) ++p_;
  }
  std::string_view identifier() {
    const char* begin = p_;
    if (begins_name(*p_))
      while (is_of_name(*p_)) ++p_;
    return {begin, static_cast<size_t>(p_ - begin)};
  }
  int fail(const std::string& text) {
    if (error_.empty()) error_ = text;
    return -1;
  }
  int emit(Opcode op, int a, int b = -1, int c = -1) {
    if (!error_.empty()) return -1;
    // If the condition of a select is a constant, the parser makes the choice and emits no select. The host binds has_<input>, 1 if an
    // optional input is present, and <attribute>_is_<value>, 1 if a string attribute has that value, to constants.
    if (op == Opcode::select && program_.code[static_cast<size_t>(a)].op == Opcode::constant)
      return program_.code[static_cast<size_t>(a)].literal != 0 ? b : c;
    return program_.push({op, a, b, c, 0});
  }
  int sum() {
    int v = product();
    for (;;) {
      skip();
      if (*p_ != '+' && *p_ != '-') return v;
      const Opcode op = *p_++ == '+' ? Opcode::add : Opcode::sub;
      v = emit(op, v, product());
    }
  }
  int product() {
    int v = unary();
    for (;;) {
      skip();
      if (*p_ != '*' && *p_ != '/') return v;
      const Opcode op = *p_++ == '*' ? Opcode::mul : Opcode::div;
      v = emit(op, v, unary());
    }
  }
  int unary() {
    skip();
    if (++depth_ > 200) return fail("nested too deeply");
    int v;
    if (*p_ == '-') {
      ++p_;
      skip();
      if (is_digit(*p_) || *p_ == '.')
        v = number(-1.0);
      else
        v = emit(Opcode::neg, unary());
    } else {
      v = primary();
    }
    --depth_;
    return v;
  }
  int number(double sign) {
    double value = 0;
    const char* const end = number_end(p_);
    if (end == p_) return fail("bad number");
    if (!read_number(p_, end, value)) return fail("number out of range: " + std::string(p_, end));
    p_ = end;
    return program_.push({Opcode::constant, -1, -1, -1, sign * value});
  }
  int primary() {
    skip();
    if (*p_ == '(') {
      ++p_;
      const int v = sum();
      skip();
      if (*p_ != ')') return fail("missing ')'");
      ++p_;
      return v;
    }
    if (is_digit(*p_) || *p_ == '.') return number(1.0);
    const std::string_view name = identifier();
    if (name.empty()) return fail(*p_ ? std::string("unexpected '") + *p_ + "'" : "unexpected end");
    skip();
    if (*p_ == '(') return call(name);
    for (const auto& n : names_)
      if (n.first == name) return n.second;
    for (const auto& c : constants_)
      if (c.first == name) return program_.push({Opcode::constant, -1, -1, -1, c.second});
    if (name == "inf") return program_.push({Opcode::constant, -1, -1, -1, HUGE_VAL});
    if (name == "nan") return program_.push({Opcode::constant, -1, -1, -1, std::nan("")});
    return program_.input(name);
  }
  int call(std::string_view name) {
    ++p_;
    int arguments[3] = {-1, -1, -1};
    int n = 0;
    skip();
    while (*p_ != ')') {
      if (n == 3) return fail("too many arguments for " + std::string(name));
      arguments[n++] = sum();
      if (!error_.empty()) return -1;
      skip();
      if (*p_ == ',')
        ++p_;
      else if (*p_ != ')')
        return fail("missing ')' after " + std::string(name));
    }
    ++p_;
    for (int op = 2; op < opcode_count; ++op) {
      const OpcodeInfo& i = info(static_cast<Opcode>(op));
      if (name != i.name) continue;
      if (n != i.arity) return fail(std::string(name) + " takes " + std::to_string(i.arity) + " arguments");
      return emit(static_cast<Opcode>(op), arguments[0], arguments[1], arguments[2]);
    }
    return fail("unknown function " + std::string(name));
  }
  // Copies the instruction of the result to the end of the program, where the result must be (adding zero instead would change -0.0).
  void move_to_end(int result) { program_.code.push_back(program_.code[static_cast<size_t>(result)]); }

  const char* p_;
  const Constants& constants_;
  Program& program_;
  std::vector<std::pair<std::string_view, int>> names_;
  std::string error_;
  int depth_ = 0;
};

}  // namespace detail

// Parses `text`. Names that are neither statements nor in `constants` become inputs, in order of appearance after those already in
// program.inputs. Returns false and a message in `error` if the text is wrong.
inline bool parse(const std::string& text, const Constants& constants, Program& program, std::string& error) {
  return detail::Parser(text, constants, program).parse(error);
}

// Removes the instructions that the result does not need.
inline void prune(Program& program) {
  const size_t n = program.code.size();
  if (n == 0) return;
  std::vector<int32_t> place(n, -1);
  place[n - 1] = 0;  // marks it as needed; places are assigned below
  for (size_t k = n; k-- > 0;) {
    const Instruction& i = program.code[k];
    if (place[k] < 0 || i.op == Opcode::input || i.op == Opcode::constant) continue;
    for (int32_t x : {i.a, i.b, i.c})
      if (x >= 0) place[static_cast<size_t>(x)] = 0;
  }
  std::vector<Instruction> kept;
  for (size_t k = 0; k < n; ++k) {
    if (place[k] < 0) continue;
    Instruction i = program.code[k];
    place[k] = static_cast<int32_t>(kept.size());
    if (i.op != Opcode::input && i.op != Opcode::constant)
      for (int32_t* x : {&i.a, &i.b, &i.c})
        if (*x >= 0) *x = place[static_cast<size_t>(*x)];
    kept.push_back(i);
  }
  program.code = std::move(kept);
}

// Returns the number of operations that a program does for each element.
inline int operations(const Program& program) {
  int n = 0;
  for (const Instruction& i : program.code) n += i.op != Opcode::input && i.op != Opcode::constant;
  return n;
}

// Returns the <word> of each name "<prefix><word>" in `text`. With the prefix "<attribute>_is_" these are the values that the text compares
// a string attribute with.
inline std::vector<std::string> mentioned(const std::string& text, const std::string& prefix) {
  std::vector<std::string> words;
  const auto part_of_name = [&](size_t i) { return i < text.size() && detail::is_of_name(text[i]); };
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
    if (at > 0 && part_of_name(at - 1)) continue;
    size_t last = at + prefix.size();
    while (part_of_name(last)) ++last;
    words.push_back(text.substr(at + prefix.size(), last - at - prefix.size()));
  }
  return words;
}

// Returns the canonical text: an instruction that is used once is nested, one that is used more often becomes a statement "t<k> = ...".
// Parsing the text again, with the inputs in the same order, gives the same operations; those of statements come first.
inline std::string print(const Program& program) {
  const size_t n = program.code.size();
  std::vector<int> uses(n, 0);
  for (const Instruction& i : program.code)
    if (i.op != Opcode::input && i.op != Opcode::constant)
      for (int32_t x : {i.a, i.b, i.c})
        if (x >= 0) ++uses[static_cast<size_t>(x)];
  std::vector<std::string> text(n);
  std::string statements;
  for (size_t k = 0; k < n; ++k) {
    const Instruction& i = program.code[k];
    if (i.op == Opcode::input) {
      text[k] = program.inputs[static_cast<size_t>(i.a)];
      continue;
    }
    if (i.op == Opcode::constant) {
      if (std::isnan(i.literal)) {
        text[k] = "nan";
      } else if (std::isinf(i.literal)) {
        text[k] = i.literal > 0 ? "inf" : "neg(inf)";
      } else {
        text[k] = detail::print_number(i.literal);
      }
      continue;
    }
    std::string s(info(i.op).name);
    char before = '(';
    for (int32_t x : {i.a, i.b, i.c}) {
      if (x < 0) continue;
      s += before;
      if (before == ',') s += ' ';
      s += text[static_cast<size_t>(x)];
      before = ',';
    }
    s += ')';
    if (uses[k] > 1 && k + 1 < n) {
      const std::string name = "t" + std::to_string(k);
      statements += name + " = " + s + "; ";
      text[k] = name;
    } else {
      text[k] = s;
    }
  }
  return n ? statements + text[n - 1] : std::string();
}

// Appends the instructions of `inner` to `target`. The instruction of `target` with index bind[i] takes the place of inner.inputs[i].
// Returns the index in `target` of the instruction that computes the result of `inner`.
inline int append(Program& target, const Program& inner, const std::vector<int>& bind) {
  std::vector<int> map(inner.code.size(), -1);
  for (size_t k = 0; k < inner.code.size(); ++k) {
    Instruction i = inner.code[k];
    if (i.op == Opcode::input) {
      map[k] = bind[static_cast<size_t>(i.a)];
      continue;
    }
    auto moved = [&](int32_t x) { return x < 0 ? -1 : map[static_cast<size_t>(x)]; };
    if (i.op != Opcode::constant) {
      i.a = moved(i.a);
      i.b = moved(i.b);
      i.c = moved(i.c);
    }
    map[k] = target.push(i);
  }
  return map.back();
}

}  // namespace expression
}  // namespace heddle
