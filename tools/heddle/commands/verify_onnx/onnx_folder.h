// One ONNX backend test folder (model.onnx, test_data_set_*/input_*.pb, output_*.pb): imported, saved, opened and run as a user would, and
// its outputs compared with the files beside the model.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/command.h"
#include "heddle/limits.h"
#include "tensors/compare.h"

namespace heddle::tool {

// The tolerances of `folder`/data.json ({"rtol": ..., "atol": ...}, the format of ONNX's backend tests); none where there is no such file.
// Errors: syntax, file_unreadable.
Result<Tolerances> tolerances_beside(const std::filesystem::path& folder);

struct FolderVerdict {
  std::string status;  // "pass", "pass-statistical", "fail" or "unsupported"
  std::string reason;  // why it did not pass
  // For the floating-point outputs that were compared; the atol is the largest that was used.
  std::optional<double> max_abs_error, max_rel_error, rtol, atol;

  Json json() const;
};

// Whether the folder holds a model.onnx.
bool is_onnx_folder(const std::filesystem::path& folder);

// `given`: from the command line, takes precedence over data.json. Files are written into `scratch`. All failures are in the verdict:
// features that Heddle does not have (an operator, a kernel, a newer opset) are unsupported. `options`: of its session; its limits also
// apply to the import.
FolderVerdict check_onnx_folder(const std::filesystem::path& folder, const Tolerances& given, const SessionOptions& options,
                                const Runtime& runtime, const std::filesystem::path& scratch);

}  // namespace heddle::tool
