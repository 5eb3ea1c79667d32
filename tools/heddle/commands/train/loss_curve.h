// The losses of a training as a picture.
#pragma once

#include <string>
#include <vector>

#include "heddle/status.h"

namespace heddle::tool {

struct LossPoint {
  int64_t step = 0;
  double loss = 0;
};

// An SVG of two lines, of the losses of the steps and of those of the test net; what is not finite is left out. Errors: file_unwritable.
Status write_loss_curve(const std::string& file, const std::string& title, const std::vector<LossPoint>& steps,
                        const std::vector<LossPoint>& tests);

}  // namespace heddle::tool
