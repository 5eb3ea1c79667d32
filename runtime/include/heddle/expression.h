// Pointwise expressions: the small language in which operators say what they do to one element.
//
//   "max(x, 0)"      "t = x + y; t * sigmoid(t)"      "select(lt(x, 0), alpha * x, x)"
//
// Statements "name = expression;" then one result expression. Names are inputs, attributes (bound to numbers by the host) or earlier
// statements. Infix + - * /, unary -, parentheses, numbers, and the functions below. Parsed once into a flat program that fusion
// composes and kernels interpret block by block. Header-only, C++17; used by the runtime and by kernels. Not thread-safe per object.
#pragma once

#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle {
namespace expression {

enum class Opcode : uint8_t {
  input,     // a: index of the input
  constant,  // literal
  add,
  sub,
  mul,
  div,
  min,
  max,
  pow,
  mod,
  fmod,  // mod: sign of the divisor, fmod: of the dividend
  lt,
  le,
  gt,
  ge,
  eq,
  ne,  // 0 or 1
  logical_and,
  logical_or,
  logical_xor,  // of non-zero
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  neg,
  abs,
  exp,
  log,
  sqrt,
  rsqrt,
  reciprocal,
  tanh,
  erf,
  sigmoid,
  floor,
  ceil,
  round,
  sign,
  logical_not,
  bit_not,
  sin,
  cos,
  tan,
  asin,
  acos,
  atan,
  sinh,
  cosh,
  asinh,
  acosh,
  atanh,
  log1p,
  expm1,
  isnan,
  isinf,
  select,  // a != 0 ? b : c
};

struct OpcodeInfo {
  std::string_view name;
  int arity;
};
// Indexed by Opcode.
inline const OpcodeInfo& info(Opcode op) {
  static constexpr OpcodeInfo table[] = {
      {"input", 0},       {"constant", 0}, {"add", 2},     {"sub", 2},   {"mul", 2},     {"div", 2},    {"min", 2},     {"max", 2},
      {"pow", 2},         {"mod", 2},      {"fmod", 2},    {"lt", 2},    {"le", 2},      {"gt", 2},     {"ge", 2},      {"eq", 2},
      {"ne", 2},          {"and", 2},      {"or", 2},      {"xor", 2},   {"bit_and", 2}, {"bit_or", 2}, {"bit_xor", 2}, {"shift_left", 2},
      {"shift_right", 2}, {"neg", 1},      {"abs", 1},     {"exp", 1},   {"log", 1},     {"sqrt", 1},   {"rsqrt", 1},   {"reciprocal", 1},
      {"tanh", 1},        {"erf", 1},      {"sigmoid", 1}, {"floor", 1}, {"ceil", 1},    {"round", 1},  {"sign", 1},    {"not", 1},
      {"bit_not", 1},     {"sin", 1},      {"cos", 1},     {"tan", 1},   {"asin", 1},    {"acos", 1},   {"atan", 1},    {"sinh", 1},
      {"cosh", 1},        {"asinh", 1},    {"acosh", 1},   {"atanh", 1}, {"log1p", 1},   {"expm1", 1},  {"isnan", 1},   {"isinf", 1},
      {"select", 3},
  };
  return table[static_cast<int>(op)];
}
constexpr int opcode_count = static_cast<int>(Opcode::select) + 1;

struct Instruction {
  Opcode op = Opcode::constant;
  int32_t a = -1, b = -1, c = -1;  // earlier instructions; for `input`: a is the input's index
  double literal = 0;
};

// Instructions in dependency order; the last one is the result.
struct Program {
  std::vector<std::string> inputs;
  std::vector<Instruction> code;

  int push(Instruction i) {
    // Equal instructions are one: keeps composed programs small.
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

// A name and the number it stands for.
using Constants = std::vector<std::pair<std::string, double>>;

namespace detail {

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
    while (std::isspace(static_cast<unsigned char>(*p_))) ++p_;
  }
  std::string_view identifier() {
    const char* begin = p_;
    if (std::isalpha(static_cast<unsigned char>(*p_)) || *p_ == '_')
      while (std::isalnum(static_cast<unsigned char>(*p_)) || *p_ == '_') ++p_;
    return {begin, static_cast<size_t>(p_ - begin)};
  }
  int fail(const std::string& text) {
    if (error_.empty()) error_ = text;
    return -1;
  }
  int emit(Opcode op, int a, int b = -1, int c = -1) {
    if (!error_.empty()) return -1;
    // A choice that is made already: has_<input>, <attribute>_is_<value>.
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
      if (std::isdigit(static_cast<unsigned char>(*p_)) || *p_ == '.')
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
    const std::from_chars_result r = std::from_chars(p_, p_ + std::strlen(p_), value);  // not strtod: the host's locale may differ
    if (r.ptr == p_) return fail("bad number");
    p_ = r.ptr;
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
    if (std::isdigit(static_cast<unsigned char>(*p_)) || *p_ == '.') return number(1.0);
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
  // The result must be last; it is copied there (an addition of nothing would change -0.0).
  void move_to_end(int result) { program_.code.push_back(program_.code[static_cast<size_t>(result)]); }

  const char* p_;
  const Constants& constants_;
  Program& program_;
  std::vector<std::pair<std::string_view, int>> names_;
  std::string error_;
  int depth_ = 0;
};

}  // namespace detail

// Parses `text`; names that are neither statements nor in `constants` become inputs, in order of appearance after those already in
// program.inputs. False and a sentence in `error` when the text is wrong.
inline bool parse(const std::string& text, const Constants& constants, Program& program, std::string& error) {
  return detail::Parser(text, constants, program).parse(error);
}

// Drops the instructions that the result does not need.
inline void prune(Program& program) {
  const size_t n = program.code.size();
  if (n == 0) return;
  std::vector<int32_t> place(n, -1);
  place[n - 1] = 0;  // needed; places are given below
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

// Operations that a program does for each element.
inline int operations(const Program& program) {
  int n = 0;
  for (const Instruction& i : program.code) n += i.op != Opcode::input && i.op != Opcode::constant;
  return n;
}

// The names "<prefix><word>" that `text` mentions, as their words: the values a string attribute is compared with.
inline std::vector<std::string> mentioned(const std::string& text, const std::string& prefix) {
  std::vector<std::string> words;
  const auto part_of_name = [&](size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
    if (at > 0 && part_of_name(at - 1)) continue;
    size_t last = at + prefix.size();
    while (part_of_name(last)) ++last;
    words.push_back(text.substr(at + prefix.size(), last - at - prefix.size()));
  }
  return words;
}

// Canonical text: every instruction nested where it is used once, a statement "t<k> = ..." where used more often. Parsing it again with
// the same input order gives an equal program.
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
        char buffer[40];
        text[k] = std::string(buffer, std::to_chars(buffer, buffer + sizeof(buffer), i.literal).ptr);
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

// Appends `inner` to `outer`'s program with inner's inputs renamed to outer's values: `bind[i]` is the instruction of `target` that stands
// for inner.inputs[i]. Returns the instruction that is inner's result.
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
