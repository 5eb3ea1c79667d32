// Variables that several nets of one file have in common: the first net stores the content, the others only name and type.
#pragma once

#include <string_view>
#include <unordered_map>

#include "net/net.h"

namespace heddle {

// The variables of the nets that precede another one in a file. Refers to these nets.
class EarlierVariables {
 public:
  void add(const Net& net);
  // Whether one of them has this variable, with this type and content: then the content is not written again.
  bool have(const Variable& variable) const;
  // Gives variables without content that of the same variable in an earlier net.
  void complete(Net& net) const;

 private:
  std::unordered_map<std::string_view, const Variable*> by_name_;
};

}  // namespace heddle
