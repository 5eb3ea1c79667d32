// Nets of one operator: a valid case of it (from ONNX's test models), or one made from its schema alone, with up to three things about it
// changed to what no exporter writes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fuzz/mutate.h"

namespace heddle::fuzz {

struct OperatorCase {
  Net net;
  std::vector<std::shared_ptr<const Blob>> feeds;  // by input; null: any content
};

class HostileOperators {
 public:
  explicit HostileOperators(Material material);
  size_t count() const { return material_.operators.size(); }
  size_t count_with_seeds() const { return seeds_.size(); }
  // Makes a case of operator `number` modulo count().
  OperatorCase make(size_t number, Dice& dice) const;

 private:
  Net from_schema(const OperatorSchema& schema, Dice& dice) const;
  void spoil(Net& net, Dice& dice) const;

  Material material_;
  std::map<std::string, std::vector<size_t>> seeds_;  // indices into material_, by the display name of a net's only operator
};

}  // namespace heddle::fuzz
