#include "conformance/cases/row_calls.h"

#include <algorithm>
#include <cctype>

#include "commands/plugin/check/operator_cases.h"

namespace heddle::conformance {
namespace {

// Returns the first input in which the letter stands for a dtype; npos: there is none.
size_t first_input_with(const std::string& call, char letter) {
  size_t input = 0;
  int depth = 0;
  for (size_t i = 0; i < call.size() && call[i] != ';'; ++i) {
    depth += call[i] == '[' ? 1 : call[i] == ']' ? -1 : 0;
    if (depth == 0 && call[i] == ',') ++input;
    const bool alone = (i == 0 || !std::isalnum(static_cast<unsigned char>(call[i - 1]))) && i + 1 < call.size() && call[i + 1] == '[';
    if (call[i] == letter && alone) return input;
  }
  return std::string::npos;
}

std::string with_dtype(std::string call, char letter, DType dtype) {
  for (size_t i = 0; i + 1 < call.size(); ++i) {
    const bool alone = (i == 0 || !std::isalnum(static_cast<unsigned char>(call[i - 1]))) && call[i + 1] == '[';
    if (call[i] != letter || !alone) continue;
    call.replace(i, 1, to_string(dtype));
  }
  return call;
}

}  // namespace

std::vector<std::string> calls_of(const RegistrySnapshot& registry, const OperatorSchema& schema, const std::string& text) {
  const tool::Coverage all(registry, schema);
  const auto dtypes_of = [&](char letter) {
    const size_t input = first_input_with(text, letter);
    return input == std::string::npos
               ? std::vector<DType>()
               : all.dtypes(static_cast<uint32_t>(std::min<size_t>(input, schema.op->input_count > 0 ? schema.op->input_count - 1 : 0)));
  };
  std::vector<std::string> calls;
  const std::vector<DType> of_t = dtypes_of('T'), of_u = dtypes_of('U');
  if (of_t.empty()) calls.push_back(text);
  for (const DType t : of_t) calls.push_back(with_dtype(text, 'T', t));
  if (of_u.empty()) return calls;
  std::vector<std::string> both;
  for (const std::string& call : calls) {
    both.push_back(with_dtype(call, 'U', of_u[0]));
    if (&call != calls.data()) continue;
    for (size_t u = 1; u < of_u.size(); ++u) both.push_back(with_dtype(call, 'U', of_u[u]));
  }
  return both;
}

}  // namespace heddle::conformance
