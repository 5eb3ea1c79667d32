// Pictures as the values of an input [batch, channels, height, width], decoded when their batch is read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "commands/train/data/sample_column.h"
#include "heddle/session.h"
#include "tensors/picture.h"

namespace heddle::tool {

// Returns true if the input takes pictures: f32, of fixed extents and 1 or 3 channels.
bool takes_pictures(const PortInfo& input);
// Two inputs of one sample are changed alike: what is random follows from the number of the sample. Errors: those of
// PictureReader::create. REQUIRES: takes_pictures(input).
Result<std::shared_ptr<const SampleColumn>> picture_column(const PortInfo& input, std::vector<std::string> paths,
                                                           const PictureNumbers& numbers, const PictureChanges& changes);

}  // namespace heddle::tool
