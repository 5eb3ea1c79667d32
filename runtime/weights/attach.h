// Weights of a net: attaching the files it refers to, checking later that they are unchanged, releasing memory.
#pragma once

#include <filesystem>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

struct AttachOptions {
  Limits limits;
  bool verify_checksums = false;  // reads every tensor once
  bool map = true;                // false: read into memory
};

// Fills the blobs of all contents (subnets too) that have a reference and no blob. Reports all findings at once: the first, others
// attached. A file with an identity must have the one that the net was written with; tensors of a file without one (weights of other
// programs, or written over with them) are read and compared with the checksums of the net, if it knows an identity. Where net and file
// both have a checksum of a tensor, they must agree. Weights whose writer was killed before renaming them are found under their earlier
// name, ".NAME.IDENTITY". Errors: weights_missing (file or tensor), weights_outside, weights_mismatch (identity, dtype, shape, checksum),
// file_*, unsupported.
Status attach_weights(Net& net, const std::filesystem::path& folder, const AttachOptions& options = {});

// Calls Mapping::still_whole for every weights file that the net has mapped. To be called when a session is opened, before prepacking and
// before another plan is prepared. Linear in the number of contents.
Status check_weights_whole(const Net& net);

}  // namespace heddle
