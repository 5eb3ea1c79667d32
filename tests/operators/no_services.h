// For kernels that are made alone, without a net around them.
#pragma once

#include <span>
#include <string>

#include "plugin/host.h"

namespace heddle::testing {

class NoServices : public CallServices {
 public:
  const void* prepack(uint32_t, const std::string&, uint64_t, heddle_prepack_fill, void*, std::string&) override { return nullptr; }
  Status infer_subnet(const heddle_subnet*, heddle_call::Views, std::span<heddle_type* const>) override {
    return {Code::unsupported, "no subnets here"};
  }
};

}  // namespace heddle::testing
