// Mutators of nets and of net files. Three depths: the net as a graph (what comes out gets past load and reaches infer, transform and
// compile), the text form word by word, and bytes with length and checksum of the header repaired.
#pragma once

#include <cstddef>
#include <vector>

#include "fuzz/dice.h"
#include "net/net.h"
#include "plugin/registry.h"

namespace heddle::fuzz {

using Bytes = std::vector<std::byte>;
constexpr int64_t max_elements = 4096;  // of a tensor of a case

// What a mutator may put in.
struct Material {
  std::vector<const OperatorSchema*> operators;
  std::vector<Net> seeds;  // at least one
};

// Mostly small numbers, some at an edge.
std::shared_ptr<const Blob> random_blob(DType dtype, const Shape& shape, Dice& dice);

// Up to max_elements, odd and empty extents among them.
Shape random_shape(Dice& dice);

// A value of the kind that a schema asks for: numbers at edges, words that operators know, lists, tensors, nets.
AttributeValue random_attribute(heddle_attribute_type type, const Material& material, Dice& dice);

// One to six changes; the links that a net's writer checks are kept true, everything else may be wrong.
void mutate_net(Net& net, const Material& material, Dice& dice);

// One to four changes of words, numbers, names and stretches of a JSON text.
void mutate_text(Bytes& text, const Material& material, Dice& dice);

// One to four flipped bits, interesting words, copied, removed or doubled stretches behind the header (anywhere when there is none).
void mutate_bytes(Bytes& file, Dice& dice);

// Length and checksum of a binary file as they should be; leaves other bytes alone.
void repair_header(Bytes& file);

// A mutation of one of the seeds in one of the two forms: what the fuzzer without coverage runs.
Bytes make_case(const Material& material, Dice& dice);

}  // namespace heddle::fuzz
