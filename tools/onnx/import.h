// ONNX model file → Net. This interface does not depend on protobuf.
//
// Operators of every opset from 1 to newest_opset are legalised to one semantics, the newest of that opset range (operators.h is
// the table); a node's version in the net is the since-version of that semantics. Operators of other domains pass through untouched
// and are resolved against plugins later. How values, constants, symbols, subgraphs and functions map is in docs/importing_onnx.md.
// Model files are untrusted: every finding is an error value. Functions are pure but for reading files; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

struct ImportOptions {
  Limits limits;               // file and tensor bytes, nodes, subnet depth, name bytes
  bool keep_dropouts = false;  // for a net that is to be trained: a Dropout in inference mode stays one, unless its mask is read
  std::vector<std::string>* initializers = nullptr;          // receives the names of the constants that the main graph has as initializers
  std::vector<std::filesystem::path>* files_read = nullptr;  // receives the files of the model's external data
  std::function<void(int64_t done, int64_t total)> progress = {};  // called before each operator of the main graph; may be empty
};

// The net of the model at `model`, with all weights loaded (external data is read from beneath the model's folder only).
// Errors: file_not_found, file_unreadable, file_corrupt, file_truncated, file_version (IR or opset too new), weights_missing,
// weights_mismatch, weights_outside, duplicate_name, dangling_input, cycle, subnet_mismatch, attribute_mismatch, arity_mismatch,
// limit_exceeded, unsupported (strings, sequences, optionals, sparse tensors, narrow floats: named), unknown_operator (all unknown
// operators at once, one attached diagnostic each).
Result<Net> import_onnx(const std::filesystem::path& model, const ImportOptions& options = {});

}  // namespace heddle
