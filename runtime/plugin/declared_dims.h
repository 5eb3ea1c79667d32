// What the ports of an operator say of their dims (heddle_port::dims): read when its plugin is loaded, compared with the inputs at each
// inference, and what outputs follow from. Pure; any thread.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "heddle/abi.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

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
    int least_rank = 0;
    bool has_rest = false;
  };
  // Extents by name, -1: not bound yet; what "..." stands for.
  static constexpr size_t most_names = 16;
  struct Bound {
    std::array<int64_t, most_names> extents;
    std::array<size_t, most_names> said_by;  // the input
    Shape rest;
    bool has_rest = false;
    size_t rest_said_by = 0;
    Bound() { extents.fill(-1); }
  };

  // Empty: no port says anything. The ports outlive it. False: one that can't be read, `error` says why.
  bool read(const heddle_operator& op, std::string* error);
  bool empty() const { return inputs_.empty() && outputs_.empty(); }
  // By port; empty where none says anything.
  const std::vector<Port>& inputs() const { return inputs_; }
  size_t name_count() const { return names_.size(); }

  // Code::shape_mismatch where an input is not as declared. Views without extents (dynamic) say nothing.
  Status match(std::span<const heddle_tensor* const> inputs, Bound* bound) const;
  // The dims of an output from what the inputs bound. False: it says nothing of its own.
  Status follow(size_t output, const Bound& bound, heddle_type* type) const;
  // The dims that an input has where names and "..." stand for these.
  static Shape shape_of(const Port& port, std::span<const int64_t> extents, const Shape& rest);

 private:
  bool read_port(const heddle_port& port, bool output, Port* to, std::string* error);
  std::string text(const Port& port) const;
  Status match_input(size_t input, const Port& port, const heddle_tensor& view, Bound* bound) const;

  std::vector<std::string> names_;
  std::vector<Port> inputs_, outputs_;
};

}  // namespace heddle
