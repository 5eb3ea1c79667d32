// Mutations of ONNX protobufs as messages: the result parses, and differs from what an exporter would write. Attributes, dims, initialisers
// and subgraphs are changed most.
#pragma once

#include <string>
#include <vector>

#include "fuzz/dice.h"

namespace heddle::fuzz {

class ModelMaterial {
 public:
  // ONNX's own test models up to 16 KiB, and models with nested subgraphs that capture values of the graphs around them.
  ModelMaterial();
  ~ModelMaterial();
  ModelMaterial(const ModelMaterial&) = delete;
  ModelMaterial& operator=(const ModelMaterial&) = delete;
  size_t count() const;
  // Returns a serialised model: one to six changes of one of the models, of its bytes now and then.
  std::string make(Dice& dice) const;

 private:
  struct Parts;
  Parts* parts_;
};

}  // namespace heddle::fuzz
