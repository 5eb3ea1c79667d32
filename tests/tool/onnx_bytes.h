// ONNX models and tensors as bytes, without protobuf: enough of the wire format for the tool's tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace heddle::tool_tests::onnx_bytes {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
inline std::string integer(int field, uint64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(value);
}
// A text or a message inside the message.
inline std::string part(int field, const std::string& bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}

using Dims = std::vector<int64_t>;

// TensorProto with f32 as raw_data.
inline std::string tensor(const std::string& name, const Dims& dims, const std::vector<float>& values) {
  std::string bytes;
  for (const int64_t dim : dims) bytes += integer(1, static_cast<uint64_t>(dim));
  return bytes + integer(2, 1) + part(8, name) + part(9, {reinterpret_cast<const char*>(values.data()), 4 * values.size()});
}
inline std::string ints(const std::string& name, const std::vector<int64_t>& values) {
  return integer(1, values.size()) + integer(2, 7) + part(8, name) +
         part(9, {reinterpret_cast<const char*>(values.data()), 8 * values.size()});
}
// ValueInfoProto of f32.
inline std::string value(const std::string& name, const Dims& dims) {
  std::string shape;
  for (const int64_t dim : dims) shape += part(1, integer(1, static_cast<uint64_t>(dim)));
  return part(1, name) + part(2, part(1, integer(1, 1) + part(2, shape)));
}
// ValueInfoProto of f32 whose first dim is the symbol N.
inline std::string batch(const std::string& name, const Dims& others) {
  std::string shape = part(1, part(2, "N"));
  for (const int64_t dim : others) shape += part(1, integer(1, static_cast<uint64_t>(dim)));
  return part(1, name) + part(2, part(1, integer(1, 1) + part(2, shape)));
}
inline std::string node(const std::string& type, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                        const std::string& domain = "", const std::string& attributes = "") {
  std::string bytes;
  for (const std::string& input : inputs) bytes += part(1, input);
  for (const std::string& output : outputs) bytes += part(2, output);
  return bytes + part(3, outputs[0]) + part(4, type) + attributes + (domain.empty() ? "" : part(7, domain));
}
// An attribute of a node, with an integer.
inline std::string int_attribute(const std::string& name, uint64_t number) {
  return part(5, part(1, name) + integer(3, number) + integer(20, 2));
}

inline std::string ints_attribute(const std::string& name, const std::vector<uint64_t>& numbers) {
  std::string bytes = part(1, name) + integer(20, 7);
  for (const uint64_t number : numbers) bytes += integer(8, number);
  return part(5, bytes);
}
inline std::string tensor_attribute(const std::string& name, const std::string& tensor) {
  return part(5, part(1, name) + part(5, tensor) + integer(20, 4));
}
// An attribute of a node, with a graph: the bytes of a Graph.
inline std::string graph_attribute(const std::string& name, const std::string& graph) {
  return part(5, part(1, name) + part(6, graph) + integer(20, 5));
}

// The parts of a graph, in any order; model() makes the file.
struct Graph {
  std::string bytes;
  Graph& node(const std::string& proto) { return add(1, proto); }
  Graph& constant(const std::string& proto) { return add(5, proto); }
  Graph& input(const std::string& proto) { return add(11, proto); }
  Graph& output(const std::string& proto) { return add(12, proto); }
  // `domains` are those other than ONNX's own, all at version 1.
  std::string model(uint64_t opset = 13, const std::vector<std::string>& domains = {}) const {
    std::string file = integer(1, 8) + part(7, bytes + part(2, "test")) + part(8, integer(2, opset));
    for (const std::string& domain : domains) file += part(8, part(1, domain) + integer(2, 1));
    return file;
  }

 private:
  Graph& add(int field, const std::string& proto) {
    bytes += part(field, proto);
    return *this;
  }
};

// x [n] → Type → y [n], in a domain.
inline Graph unary(const std::string& type, int64_t n, const std::string& domain = "") {
  return Graph().input(value("x", {n})).node(node(type, {"x"}, {"y"}, domain)).output(value("y", {n}));
}

}  // namespace heddle::tool_tests::onnx_bytes
