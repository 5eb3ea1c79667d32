#include "differential/wire.h"

#include <cstdlib>

namespace heddle::differential {
namespace {

void read_exactly(std::FILE* in, void* to, size_t bytes) {
  if (bytes == 0 || std::fread(to, 1, bytes, in) == bytes) return;
  std::fprintf(stderr, "the requests end within one\n");
  std::exit(2);
}

template <class T>
T read_number(std::FILE* in) {
  T value{};
  read_exactly(in, &value, sizeof(value));
  return value;
}

template <class T>
void write_number(std::FILE* out, T value) {
  std::fwrite(&value, sizeof(value), 1, out);
}

void write_text(std::FILE* out, const std::string& text) {
  write_number(out, static_cast<uint32_t>(text.size()));
  std::fwrite(text.data(), 1, text.size(), out);
}

Tensor read_tensor(std::FILE* in) {
  const auto dtype = static_cast<DType>(read_number<int32_t>(in));
  Shape shape;
  for (int32_t left = read_number<int32_t>(in); left > 0; --left) shape.push_back(read_number<int64_t>(in));
  Tensor tensor(dtype, shape);
  read_exactly(in, tensor.data(), static_cast<size_t>(tensor.byte_size()));
  return tensor;
}

}  // namespace

std::optional<Request> read_request(std::FILE* in) {
  uint32_t bytes = 0;
  if (std::fread(&bytes, sizeof(bytes), 1, in) != 1) return std::nullopt;
  Request request;
  request.model.resize(bytes);
  read_exactly(in, request.model.data(), bytes);
  for (auto left = read_number<uint32_t>(in); left > 0; --left) request.inputs.push_back(read_tensor(in));
  return request;
}

void write_results(std::FILE* out, const std::vector<Tensor>& results) {
  write_number(out, uint32_t{0});
  write_number(out, static_cast<uint32_t>(results.size()));
  for (const Tensor& tensor : results) {
    write_number(out, static_cast<int32_t>(tensor.dtype()));
    write_number(out, static_cast<int32_t>(tensor.shape().rank()));
    for (const int64_t extent : tensor.shape()) write_number(out, extent);
    std::fwrite(tensor.data(), 1, static_cast<size_t>(tensor.byte_size()), out);
  }
  std::fflush(out);
}

void write_error(std::FILE* out, const std::string& stage, const Status& status) {
  write_number(out, uint32_t{1});
  write_text(out, stage);
  write_text(out, to_string(status.code()));
  write_text(out, status.text());
  std::fflush(out);
}

}  // namespace heddle::differential
