// Tensor literals: small tensors as bytes in a net's file, and as text.
//
// Text is a flat list in row-major order. Numbers are the shortest that read back as the same bits; infinities are "inf" and "-inf", the
// default NaN is "nan", any other "nan:<bits in hex>". Booleans are 0 and 1.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "base/text/json_document.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Returns a copy of `bytes` with that dtype and shape even when their size does not fit (check_blob finds that).
std::shared_ptr<const Blob> literal_blob(DType dtype, const Shape& shape, std::span<const std::byte> bytes);

// Appends "[1, 2.5, \"nan\"]". The blob must pass check_blob.
void append_literal(std::string& out, const Blob& blob);
void append_number(std::string& out, double value);

// Converts a list to a tensor. Errors: syntax, shape_mismatch.
Result<std::shared_ptr<const Blob>> parse_literal(JsonValue list, DType dtype, const Shape& shape);
// Reads a number, "nan", "inf", ... . Errors: syntax.
Result<double> parse_number(JsonValue value);

}  // namespace heddle
