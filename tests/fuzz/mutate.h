// Mutators of nets and of net files. Three depths: the net as a graph (the result gets past load and reaches infer, transform and compile),
// the text form word by word, and bytes with length and checksum of the header repaired.
#pragma once

#include <cstddef>
#include <vector>

#include "fuzz/dice.h"
#include "net/net.h"
#include "plugin/registry.h"

namespace heddle::fuzz {

using Bytes = std::vector<std::byte>;
constexpr int64_t max_elements = 4096;  // of a tensor of a case

// The operators and nets that a mutator draws from.
struct Material {
  std::vector<const OperatorSchema*> operators;
  std::vector<Net> seeds;  // at least one
};

// Mostly small numbers, some at an edge.
std::shared_ptr<const Blob> random_blob(DType dtype, const Shape& shape, Dice& dice);

// Up to max_elements, odd and empty extents among them.
Shape random_shape(Dice& dice);

// Returns a value of the type that a schema requires: numbers at edges, words that operators know, lists, tensors, nets.
AttributeValue random_attribute(heddle_attribute_type type, const Material& material, Dice& dice);

// Makes one to six changes; the links that a net's writer checks stay consistent, everything else may be wrong.
void mutate_net(Net& net, const Material& material, Dice& dice);

// Makes one to four changes of words, numbers, names and stretches of a JSON text.
void mutate_text(Bytes& text, const Material& material, Dice& dice);

// Makes one to four changes after the header (anywhere when there is none): flipped bits, interesting words, copied, removed or doubled
// stretches.
void mutate_bytes(Bytes& file, Dice& dice);

// Corrects length and checksum of a binary file; leaves other bytes alone.
void repair_header(Bytes& file);

// Returns a mutation of one of the seeds in one of the two forms: the cases of the fuzzer without coverage.
Bytes make_case(const Material& material, Dice& dice);

}  // namespace heddle::fuzz
