// The host's view of a loaded plugin: its library and the operators and kernels found in it.
//
// A LoadedPlugin is immutable once registered and shared: registry, resolved nets and plans each hold it, and its library is unloaded when
// the last of them releases it.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/abi.h"
#include "heddle/device_plugin.h"
#include "heddle/expression.h"
#include "heddle/tensor.h"
#include "plugin/declared_dims.h"
#include "plugin/library.h"

namespace heddle {

struct LoadedPlugin;

// One operator at one since-version.
struct OperatorSchema {
  const heddle_operator* op = nullptr;
  std::string domain;
  std::string name;
  int32_t version = 0;
  const LoadedPlugin* plugin = nullptr;
  uint32_t required_inputs = 0;
  bool has_shape_operand = false;
  int pointwise_operations = -1;  // operations of its expression, for each element; -1: it has none
  DeclaredDims declared_dims;

  // The port that argument `i` belongs to (a variadic last port takes all further ones); null when there are too many.
  const heddle_port* input_port(size_t i) const { return port(op->inputs, op->input_count, i); }
  const heddle_port* output_port(size_t i) const { return port(op->outputs, op->output_count, i); }
  // Index of an attribute in the schema, -1 when it has none of that name.
  int attribute_index(std::string_view attribute) const;
  bool has_trait(uint32_t bit) const { return (op->traits & bit) != 0; }
  bool updates_variable() const;
  // The input whose next version output `output` is; the input whose bytes it may take, or HEDDLE_ALIAS_ANY. -1: none.
  int updated_input(size_t output) const { return with(output, &heddle_port::updates); }
  // The output that is the next version of input `input`; -1: none is.
  int updating_output(size_t input) const {
    for (uint32_t o = 0; o < op->output_count; ++o)
      if (op->outputs[o]->updates == static_cast<int>(input)) return static_cast<int>(o);
    return -1;
  }
  int alias_input(size_t output) const { return with(output, &heddle_port::may_alias); }

 private:
  // The k-th value of a variadic output corresponds to the k-th of the port that it names.
  int with(size_t output, int32_t heddle_port::*named) const {
    const heddle_port* port = output_port(output);
    if (!port || port->*named < 0) return port ? port->*named : -1;
    const size_t first = op->output_count - 1;
    return port->*named + static_cast<int>((port->flags & HEDDLE_PORT_VARIADIC) && output > first ? output - first : 0);
  }
  static const heddle_port* port(const heddle_port* const* ports, uint32_t count, size_t i) {
    if (i < count) return ports[i];
    if (count == 0 || !ports[count - 1]) return nullptr;
    return (ports[count - 1]->flags & HEDDLE_PORT_VARIADIC) ? ports[count - 1] : nullptr;
  }
};

struct KernelEntry {
  const heddle_kernel* kernel = nullptr;
  const LoadedPlugin* plugin = nullptr;
  std::string name;  // for plans and profiles: "cpu:Conv"
};

struct LoadedPlugin {
  std::unique_ptr<Library> library;
  std::string name;
  std::string version;
  std::deque<OperatorSchema> operators;
  std::deque<KernelEntry> kernels;
};

// "domain::Name" or "Name" for ONNX's domain.
std::string display_name(std::string_view domain, std::string_view name);

}  // namespace heddle
