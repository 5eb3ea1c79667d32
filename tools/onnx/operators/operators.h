// The one table of operators that the importer reads: every operator of ONNX's own domain with the since-version of the semantics that nets
// carry, and the ranges of older opsets that are rewritten to it. An operator in an opset outside its ranges is taken without changes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/operators/legalise.h"

namespace heddle::importer {

// Opsets of ONNX's own domain, as import_onnx reads them.
inline constexpr int32_t oldest_opset = 1;
inline constexpr int32_t newest_opset = 28;
// The opset whose semantics nets carry. Later opsets gave operators more element types, none of which Heddle has, and attributes
// (NewAttribute).
inline constexpr int32_t carried_opset = 21;

struct OperatorVersion {
  std::string_view type;
  int32_t since;  // that nets carry
  int32_t until;  // the newest since-version that means the same, except for NewAttributes
};

// An attribute that an operator has from opset `since` on, after carried_opset. A node that has it with another value than `ours`, the
// meaning of nets, is refused. Empty: any value is accepted, as it concerns only element types that Heddle does not have.
struct NewAttribute {
  std::string_view type;
  std::string_view name;
  int32_t since;
  std::string_view ours;  // a text, or a number as text
};

// Models of opset first <= v < before have the operator rewritten by `apply`.
struct Legalisation {
  std::string_view type;
  int32_t first;
  int32_t before;
  Legaliser apply;
  std::string_view effect;  // one line for the documentation
};

// Sorted by type.
std::span<const OperatorVersion> operators();
std::span<const Legalisation> legalisations();
std::span<const NewAttribute> new_attributes();

// The since-version that nets carry; 0 for an operator that nets never carry.
int32_t implemented_version(std::string_view type);
// Null: the operator is not rewritten.
const Legalisation* find_legalisation(std::string_view type, int32_t opset);
// Returns the attribute of that name which the operator has in this opset and nets do not know; null: there is none.
const NewAttribute* find_new_attribute(std::string_view type, std::string_view name, int32_t opset);
// Whether a node of this type in a model of this opset can be imported.
bool is_known(std::string_view type, int32_t opset);
// The reason why ONNX has the operator and Heddle does not, e.g. "works on sequences"; empty for names ONNX does not have either.
std::string_view why_not(std::string_view type);
// All types a model may use; candidates for nearest names.
std::vector<std::string> known_names();
// Returns the table as Markdown, as in docs/importing_onnx.md.
std::string operator_table();

}  // namespace heddle::importer
