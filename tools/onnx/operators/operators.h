// The one table of what the importer reads: every operator of ONNX's own domain with the since-version of the semantics that nets
// carry, and the ranges of older opsets that are rewritten to it. An operator in an opset outside its ranges is taken as it is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/operators/legalise.h"

namespace heddle::importer {

// Of ONNX's own domain, as import_onnx reads them.
inline constexpr int32_t oldest_opset = 1;
inline constexpr int32_t newest_opset = 28;
// Whose semantics nets carry. Later opsets gave operators more element types, of which Heddle has none, and attributes (NewAttribute).
inline constexpr int32_t carried_opset = 21;

struct OperatorVersion {
  std::string_view type;
  int32_t since;  // that nets carry
  int32_t until;  // the newest since-version that means the same, but for NewAttributes
};

// An attribute that an operator has from opset `since` on, after carried_opset. A node that has it with another value than `ours`, which
// is what nets mean, is refused. Empty: any value is taken, as it says something of element types alone that Heddle has not.
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
// Null: as it is.
const Legalisation* find_legalisation(std::string_view type, int32_t opset);
// The attribute of that name which the operator has in this opset and nets do not know; null: there is none.
const NewAttribute* find_new_attribute(std::string_view type, std::string_view name, int32_t opset);
// Whether a node of this type in a model of this opset can be imported.
bool is_known(std::string_view type, int32_t opset);
// Why ONNX has the operator and Heddle does not, e.g. "works on sequences"; empty for names ONNX does not have either.
std::string_view why_not(std::string_view type);
// All types a model may use; candidates for nearest names.
std::vector<std::string> known_names();
// The table as Markdown, as it stands in docs/importing_onnx.md.
std::string operator_table();

}  // namespace heddle::importer
