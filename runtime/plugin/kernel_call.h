// The ABI's create context for one node of a typed net: used for the choice and creation of kernels, and for questions about formats and
// epilogues.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/device_name.h"
#include "heddle/status.h"
#include "net/typed_net.h"
#include "plugin/abi_attributes.h"
#include "plugin/call_end.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace heddle {

// Whether `device` only launches the kernel: it was written for another kind, and does more than move data. Such a kernel can't call its
// host while it runs.
bool is_launched(const heddle_kernel& kernel, const std::string& device);

// The information that a kernel may use about a node when it is created. Copies what it needs of the node, so that it may outlive the net.
// Not movable (pointers into itself).
class KernelCall {
 public:
  // The node's attributes as the kernel sees them. A kernel's state may point to them: they must outlive the state.
  struct Attributes {
    explicit Attributes(const Node& node) : values(node.attributes), table(*node.schema, values) {}
    const std::vector<Attribute> values;
    const AttributeTable table;
  };

  KernelCall(const TypedNet& net, const Node& node, std::string device, uint32_t max_threads);
  // A copy for operands of other ranks, inputs before outputs; unknown extents stay unknown.
  KernelCall(const KernelCall& of, const std::vector<int>& ranks);
  KernelCall(const KernelCall&) = delete;
  KernelCall& operator=(const KernelCall&) = delete;

  const OperatorSchema& schema() const { return *schema_; }
  const std::shared_ptr<const Attributes>& attributes() const { return attributes_; }
  const std::string& device() const { return device_; }
  void set_device_handle(void* handle) { abi_.device_handle = handle; }
  // Returns the best kernel ranked below `after`, by dtypes and device kind; null when there is none.
  const KernelEntry* find(const KernelEntry* after = nullptr) const;
  // The error where there is none: no_kernel. `net`, `node`: those that this was made for.
  Status missing(const Net& net, const Node& node) const;
  // [several threads at once] `state` is null on failure; `end`, when given, describes it.
  Status create(const KernelEntry& kernel, CallServices* services, void** state, CallEnd* end = nullptr) const;
  // Returns the formats that the kernel ranks, best first; none: row-major everywhere. Errors: kernel_failed, where it lists an invalid one
  // (a layout that is no order of the dimensions, say).
  Result<std::vector<heddle_format>> formats(const KernelEntry& kernel) const;
  // Whether the kernel runs the node with its own epilogue ops.
  bool accepts(const KernelEntry& kernel) const;
  // Whether the kernel runs the node with its own epilogue ops and one more, whose operand (of type `operand`, may be null) would be the
  // next input.
  bool accepts(const KernelEntry& kernel, const EpilogueOp& epilogue_op, const TensorType* operand);
  const std::vector<DType>& input_dtypes() const { return input_dtypes_; }

 private:
  void link();
  Status check_format(const heddle_format& format) const;
  std::shared_ptr<const RegistrySnapshot> registry_;
  const OperatorSchema* schema_;
  std::string name_;
  std::string device_;
  std::shared_ptr<const Attributes> attributes_;
  std::vector<EpilogueOp> epilogue_ops_;
  std::vector<DType> input_dtypes_, output_dtypes_;
  std::vector<heddle_type> types_;
  std::vector<char> input_present_, output_present_;
  std::vector<const heddle_type*> inputs_, outputs_;
  std::vector<heddle_epilogue_op> abi_epilogue_ops_;
  std::vector<const heddle_epilogue_op*> epilogue_op_pointers_;
  heddle_create_context abi_ = {};
};

}  // namespace heddle
