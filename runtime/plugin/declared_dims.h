// The dims that the ports of an operator declare (heddle_port::dims): parsed when its plugin is loaded, compared with the inputs at each
// inference, and used to derive those of outputs. Pure; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heddle/abi.h"
#include "heddle/status.h"
#include "heddle/tensor.h"
#include "net/typed_net.h"

namespace heddle {

class DeclaredDims {
 public:
  // One word of a declaration.
  struct Dim {
    enum class Kind : uint8_t { named, fixed, any, rest } kind = Kind::any;
    int64_t extent = 0;  // of fixed
    size_t name = 0;     // of named: its index among the operator's names
  };
  struct Port {
    const heddle_port* declared = nullptr;  // null: it declares nothing
    std::vector<Dim> dims;
    // The minimum number of dims, and whether there may be more.
    int min_rank = 0;
    bool has_rest = false;
  };
  // The extents that the names and "..." stand for, taken from the inputs that have them. An extent of -1 is not known before the run.
  static constexpr size_t max_names = 16, no_input = SIZE_MAX;
  struct Bound {
    std::array<int64_t, max_names> extents;
    std::array<size_t, max_names> said_by;  // the first input with the name and, where any input knows it, a known extent
    Shape rest;
    size_t rest_said_by = no_input;
    Bound() {
      extents.fill(-1);
      said_by.fill(no_input);
    }
  };

  // Parses the ports, which must outlive this; empty afterwards if none declares dims. Returns false, with the reason in `error`, if one
  // can't be parsed.
  bool read(const heddle_operator& op, std::string* error);
  bool empty() const { return inputs_.empty() && outputs_.empty(); }
  // By port; empty where none declares dims.
  const std::vector<Port>& inputs() const { return inputs_; }
  size_t name_count() const { return names_.size(); }

  // Code::shape_mismatch where an input differs from its declaration. An unknown extent (-1) matches any.
  Status match(std::span<const heddle_tensor* const> inputs, Bound* bound) const;
  // Derives the dims of an output from what the inputs bound; `type` stays as it is where the output's port declares nothing.
  // Code::shape_mismatch: the inputs that would determine it are absent.
  Status follow(size_t output, const Bound& bound, heddle_type* type) const;
  // Code::shape_mismatch where a shape rule gave an output other dims than are declared, or left them to the run: a mistake of the
  // operator.
  Status check_output(size_t output, const Bound& bound, const TensorType& type) const;
  // Sets unknown extents of an input, where a number or another input determines them.
  void fill(size_t input, const Bound& bound, Shape* shape) const;
  // Returns the dims of a port with these extents for names and for "...", and 3 for each "*".
  static Shape shape_of(const Port& port, std::span<const int64_t> extents, const Shape& rest);

 private:
  bool read_port(const heddle_port& port, bool output, Port* to, std::string* error);
  // Null: it declares nothing.
  static const Port* port_of(const std::vector<Port>& ports, size_t index);
  const Port* input_port(size_t index) const { return port_of(inputs_, index); }
  const Port* output_port(size_t index) const { return port_of(outputs_, index); }
  std::string text(const Port& port) const;
  Status match_input(size_t input, const Port& port, const heddle_tensor& view, Bound* bound) const;

  std::vector<std::string> names_;
  std::vector<Port> inputs_, outputs_;
};

}  // namespace heddle
