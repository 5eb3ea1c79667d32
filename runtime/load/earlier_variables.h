// Variables that several nets of one file have in common: the first of them has the content, the others say the name and the type.
#pragma once

#include <string_view>
#include <unordered_map>

#include "net/net.h"

namespace heddle {

// Of the nets of a file that come before another one. Refers to them.
class EarlierVariables {
 public:
  void add(const Net& net);
  // Whether one of them has this variable, of this type and with this content: then it is not written again.
  bool have(const Variable& variable) const;
  // Gives variables without content what a net before has for them.
  void complete(Net& net) const;

 private:
  std::unordered_map<std::string_view, const Variable*> by_name_;
};

}  // namespace heddle
