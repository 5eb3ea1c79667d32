#include "conformance/cases/pointwise_cases.h"

#include <cmath>

namespace heddle::conformance {
namespace {

// Replaces each occurrence of `word` that is not part of a longer word.
std::string replaced(std::string text, const std::string& word, const std::string& by) {
  const auto letter = [&](size_t i) { return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0; };
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if ((at > 0 && letter(at - 1)) || letter(at + word.size())) continue;
    text.replace(at, word.size(), by);
    at += by.size();
  }
  return text;
}

// Returns the least and largest numbers of a dtype.
std::string ends_of(const std::string& dtype) {
  if (dtype == "f16") return "6e-8 -6e-8 1e-5 65504 -65504";
  if (dtype == "bf16") return "1e-40 -1e-40 2e-38 3.3e38 -3.3e38";
  if (dtype == "f32") return "1e-45 -1e-40 2e-38 3.4e38 -3.4e38";
  return "5e-324 -1e-310 3e-308 1.7e308 -1.7e308";
}

}  // namespace

const Names float_names = {"f16", "bf16", "f32", "f64"}, signed_integer_names = {"i8", "i16", "i32", "i64"},
            unsigned_integer_names = {"u8", "u16", "u32", "u64"};
const std::map<Kind, std::string> no_strides = {{Kind::strided, "it takes whole tensors"}};
const std::map<Kind, std::string> one_input_only = {{Kind::strided, "it takes whole tensors"}, {Kind::broadcast, "it has one input"}};

Names joined(const std::vector<Names>& lists) {
  Names all;
  for (const Names& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Cases joined(const std::vector<Cases>& lists) {
  Cases all;
  for (const Cases& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Cases each(const Names& dtypes, Kind kind, const std::string& call) {
  Cases cases;
  for (const std::string& dtype : dtypes) cases.push_back({kind, replaced(call, "T", dtype)});
  return cases;
}

Cases over_ranges(Kind kind, const std::string& call, const Names& ranges) {
  Cases cases;
  for (const std::string& range : ranges) {
    std::string text = call;
    for (size_t at = text.find('@'); at != std::string::npos; at = text.find('@')) text.replace(at, 1, " = " + range);
    cases.push_back({kind, text});
  }
  return cases;
}

Cases over_special(Kind kind, const std::string& call) {
  Cases cases;
  for (const std::string& dtype : float_names)
    cases.push_back(
        {kind, replaced(replaced(call, "T", dtype), "SPECIAL", "nan inf -inf 0 -0 1 -1 0.5 -0.5 2 -2 3 -1.5 " + ends_of(dtype))});
  return cases;
}

std::string repeated(const Names& words, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += words[static_cast<size_t>(i) % words.size()] + ' ';
  return list;
}

Cases one_input_cases(const std::string& range) {
  const std::string of = range.empty() ? "" : " = " + range;
  Cases cases;
  for (const char* shape : {"[]", "[1]", "[7]", "[8]", "[15]", "[16]", "[17]", "[33]", "[64]", "[65]", "[3,5,17]"})
    cases.push_back({Kind::odd, "T" + (shape + of)});
  for (const char* shape : {"[0]", "[3,0,2]"}) cases.push_back({Kind::empty, "T" + (shape + of)});
  cases.push_back({Kind::rank, "T[1,2,1,2,3,2,1,3]" + of});
  cases.push_back({Kind::large, "T[301,257]" + of});
  return cases;
}

Cases two_inputs(const std::string& range_a, const std::string& range_b) {
  const std::string of_a = range_a.empty() ? "" : " = " + range_a, of_b = range_b.empty() ? "" : " = " + range_b;
  Cases cases;
  const auto add = [&](Kind kind, const std::string& a, const std::string& b) {
    cases.push_back({kind, "T" + a + of_a + ", T" + b + of_b});
  };
  for (const char* shape : {"[]", "[1]", "[7]", "[8]", "[16]", "[17]", "[33]", "[65]", "[3,5,17]"}) add(Kind::odd, shape, shape);
  add(Kind::empty, "[0]", "[0]");
  add(Kind::empty, "[3,0,2]", "[1]");
  add(Kind::empty, "[3,1,2]", "[0,1]");
  add(Kind::broadcast, "[3,1,5]", "[7,1]");
  add(Kind::broadcast, "[]", "[2,3]");
  add(Kind::broadcast, "[2,33]", "[]");
  add(Kind::broadcast, "[33]", "[2,33]");
  add(Kind::broadcast, "[2,33]", "[33]");
  add(Kind::broadcast, "[65,1]", "[1,67]");
  add(Kind::broadcast, "[65,67]", "[67]");
  add(Kind::broadcast, "[65,1]", "[65,67]");
  add(Kind::broadcast, "[2,3,17]", "[2,1,1]");
  add(Kind::broadcast, "[2,3,1,5]", "[3,4,1]");
  add(Kind::rank, "[1,2,1,2,1,2,1,3]", "[2,1,2,1,2,1,2,1]");
  add(Kind::large, "[301,257]", "[301,257]");
  add(Kind::large, "[301,257]", "[257]");
  add(Kind::large, "[301,1]", "[301,257]");
  add(Kind::large, "[61,1,33]", "[1,41,33]");  // rows that are shorter than a block
  return cases;
}

Reference of_one(Number (*f)(Number)) {
  return [f](const Call& call) { return std::vector{elementwise(call, call[0].dtype, [f](const Inputs& x) { return f(x[0]); })}; };
}

Reference of_two(Number (*f)(Number, Number), DType as) {
  return [f, as](const Call& call) {
    return std::vector{elementwise(call, as == DType::none ? call[0].dtype : as, [f](const Inputs& x) { return f(x[0], x[1]); })};
  };
}

Number lesser(Number a, Number b) {
  return std::isnan(a) || std::isnan(b) ? std::nanl("") : a < b ? a : b;
}
Number greater(Number a, Number b) {
  return std::isnan(a) || std::isnan(b) ? std::nanl("") : a > b ? a : b;
}

std::map<DType, double> beside_f32(double ulps, double ulps_of_f64) {
  return {{DType::f16, ulps * 0x1p-12}, {DType::bf16, ulps * 0x1p-15}, {DType::f64, ulps_of_f64}};
}

}  // namespace heddle::conformance
