// One ONNX backend test folder (model.onnx, test_data_set_*/input_*.pb, output_*.pb): imported, saved, opened and run as a user would, and
// its outputs compared with those that lie beside the model.
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
  std::string reason;  // of what is no pass
  // Of floating-point outputs that were compared; the atol is the largest that was used.
  std::optional<double> max_abs_error, max_rel_error, rtol, atol;

  Json json() const;
};

// Whether the folder holds a model.onnx.
bool is_onnx_folder(const std::filesystem::path& folder);

// `given`: from the command line, before those of data.json. Files are written into `scratch`. Whatever fails is in the verdict: what
// Heddle has not (an operator, a kernel, a newer opset) is unsupported. `options`: of its session; its limits are those of the import too.
FolderVerdict check_onnx_folder(const std::filesystem::path& folder, const Tolerances& given, const SessionOptions& options,
                                const Runtime& runtime, const std::filesystem::path& scratch);

}  // namespace heddle::tool
