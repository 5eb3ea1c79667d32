// compile: TypedNet -> Plan. Kernels are chosen and prepared, layouts assigned, memory planned, dependences laid out flat.
#pragma once

#include <memory>
#include <vector>

#include "base/threads/interruption.h"
#include "compile/plan.h"
#include "compile/prepack.h"
#include "device/compilation_target.h"
#include "device/resources.h"
#include "heddle/status.h"
#include "net/evaluator.h"
#include "net/typed_net.h"
#include "plugin/host.h"

namespace heddle {

// Where the session's store has the variables of a net. A store that several nets have in common has more of them, in another order.
struct VariableSlots {
  std::vector<uint32_t> of;        // by the net's variables
  std::vector<std::string> names;  // all of the store's
};

struct CompileOptions {
  bool share_memory = true;  // false: every value has bytes of its own (for comparisons)
  bool assign_layouts = true;
  bool prepack = true;
  Evaluator* evaluator = nullptr;                       // for subnets
  uint32_t body = 0;                                    // of a subnet: its id, see compiled_subnet.h; 0: the net is none
  std::shared_ptr<PackCache> packs;                     // null: packs live in the plan alone
  int64_t* prepare_ns = nullptr;                        // time spent in the kernels' create and prepare is added here
  bool commit_late = true;                              // updates of variables form the tail of the plan
  std::shared_ptr<ResourceTable> resources;             // null: asking for one is an error
  std::shared_ptr<const VariableSlots> variable_slots;  // null: the store has what the net has, in its order
  const Interruption* interruption = nullptr;           // asked between passes, and between kernels that are made; null: none
};

// Errors: no_kernel (all nodes without one), kernel_failed, limit_exceeded, out_of_memory, missing_resource. Thread-safe.
// `warnings`: what the stages before had to say; the plan keeps them.
Result<std::shared_ptr<const Plan>> compile(TypedNet net, const CompilationTarget& target, const CompileOptions& options,
                                            std::vector<Diagnostic> warnings = {});

// What a plan with late steps keeps to compile their subnets while running, owned by it: nothing in it is borrowed.
struct LateCompilation {
  CompilationTarget target;
  CompileOptions options;
};

}  // namespace heddle
