// Evaluator: how a stage before run gets the content of a small value without depending on kernels.
#pragma once

#include <memory>
#include <vector>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Content of `node`'s outputs for these inputs (null: absent). Deterministic. Code::unsupported or no_kernel when no kernel can.
  virtual Result<std::vector<std::shared_ptr<const Blob>>> evaluate(const Node& node,
                                                                    const std::vector<std::shared_ptr<const Blob>>& inputs) = 0;
};

}  // namespace heddle
