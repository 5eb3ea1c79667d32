// What the ports of an operator say of their dims (heddle_port::dims): read when its plugin is loaded, compared with the inputs at each
// inference, and what outputs follow from. Pure; any thread.
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
    const heddle_port* declared = nullptr;  // null: it says nothing
    std::vector<Dim> dims;
    // Of how many dims it is at least, and whether there may be more.
    int min_rank = 0;
    bool has_rest = false;
  };
  // What the names and "..." stand for, by the inputs that have them. An extent of -1 is not known before the run.
  static constexpr size_t max_names = 16, no_input = SIZE_MAX;
  struct Bound {
    std::array<int64_t, max_names> extents;
    std::array<size_t, max_names> said_by;  // the input that has the name first, and its extent where any input knows it
    Shape rest;
    size_t rest_said_by = no_input;
    Bound() {
      extents.fill(-1);
      said_by.fill(no_input);
    }
  };

  // Empty: no port says anything. The ports outlive it. False: one that can't be read, `error` says why.
  bool read(const heddle_operator& op, std::string* error);
  bool empty() const { return inputs_.empty() && outputs_.empty(); }
  // By port; empty where none says anything.
  const std::vector<Port>& inputs() const { return inputs_; }
  size_t name_count() const { return names_.size(); }

  // Code::shape_mismatch where an input is not as declared. An extent that is not known (-1) may be any.
  Status match(std::span<const heddle_tensor* const> inputs, Bound* bound) const;
  // The dims of an output from what the inputs bound; `type` stays as it is where the output's port says nothing. Code::shape_mismatch:
  // the inputs that would say it are absent.
  Status follow(size_t output, const Bound& bound, heddle_type* type) const;
  // Code::shape_mismatch where a shape rule gave an output other dims than it is declared with, or says that the run alone knows them: a
  // mistake of the operator.
  Status check_output(size_t output, const Bound& bound, const TensorType& type) const;
  // Extents of an input that are not known, where a number or another input says them.
  void fill(size_t input, const Bound& bound, Shape* shape) const;
  // The dims that a port has where names and "..." stand for these, and each "*" for 3.
  static Shape shape_of(const Port& port, std::span<const int64_t> extents, const Shape& rest);

 private:
  bool read_port(const heddle_port& port, bool output, Port* to, std::string* error);
  // Null: it says nothing.
  static const Port* port_of(const std::vector<Port>& ports, size_t index);
  const Port* input_port(size_t index) const { return port_of(inputs_, index); }
  const Port* output_port(size_t index) const { return port_of(outputs_, index); }
  std::string text(const Port& port) const;
  Status match_input(size_t input, const Port& port, const heddle_tensor& view, Bound* bound) const;

  std::vector<std::string> names_;
  std::vector<Port> inputs_, outputs_;
};

}  // namespace heddle
