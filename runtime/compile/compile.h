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

// The places of a net's variables in the session's store. A store shared by several nets has more variables, in another order.
struct VariableSlots {
  std::vector<uint32_t> of;        // the slot of each of the net's variables
  std::vector<std::string> names;  // of all the store's variables
};

struct CompileOptions {
  bool share_memory = true;  // false: every value has bytes of its own (for comparisons)
  bool assign_layouts = true;
  bool prepack = true;
  Evaluator* evaluator = nullptr;                       // for subnets
  uint32_t body = 0;                                    // for a subnet: its id, see compiled_subnet.h; 0: the net is not a subnet
  std::shared_ptr<PackCache> packs;                     // null: packs live in the plan alone
  int64_t* prepare_ns = nullptr;                        // time spent in the kernels' create and prepare is added here
  bool commit_late = true;                              // updates of variables form the update phase, the tail of the plan
  std::shared_ptr<ResourceTable> resources;             // null: requesting a resource is an error
  std::shared_ptr<const VariableSlots> variable_slots;  // null: the store has the net's variables, in its order
  std::function<int64_t(const std::string& communicator)> rank_in;   // of this session in a communicator; null: it has none
  std::function<int64_t(const std::string& communicator)> ranks_of;  // how many a communicator has; null: one
  // The devices of this session in a communicator, in the order in which they are members; null or empty: ascending.
  std::function<std::vector<std::string>(const std::string& communicator)> devices_of;
  std::shared_ptr<const std::string> net_text;                       // of a net for several ranks, as they have it alike; null: of another
  const Interruption* interruption = nullptr;                        // polled between passes, and between kernels that are made; null: none
};

// Errors: no_kernel (all nodes without one), kernel_failed, limit_exceeded, out_of_memory, missing_resource. Thread-safe.
// `warnings`: the diagnostics of earlier stages; the plan keeps them.
Result<std::shared_ptr<const Plan>> compile(TypedNet net, const CompilationTarget& target, const CompileOptions& options,
                                            std::vector<Diagnostic> warnings = {});

// The data that a plan with late steps keeps to compile their subnets while running; the plan owns it, nothing in it is borrowed.
struct LateCompilation {
  CompilationTarget target;
  CompileOptions options;
};

}  // namespace heddle
