// Texts as numbers: the class of a sample is the place of its text among all different ones of the training, sorted by their bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/session.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle::tool {

class ClassNames {
 public:
  // The different ones of these texts.
  static ClassNames of(std::vector<std::string> texts);
  const std::vector<std::string>& names() const { return names_; }
  // Returns the numbers of texts as the array of an input, [samples] or [samples, 1]. Errors, naming `option`: dtype_mismatch (the input
  // takes no i64 or i32); unknown_name (a text that was not trained with).
  Result<std::shared_ptr<const Blob>> numbers(const std::string& option, const PortInfo& input,
                                              const std::vector<std::string>& texts) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace heddle::tool
