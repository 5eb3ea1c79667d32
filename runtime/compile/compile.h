// compile: TypedNet -> Plan. Kernels are chosen and prepared, layouts assigned, memory planned, dependences laid out flat.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/interruption.h"
#include "base/limits.h"
#include "compile/plan.h"
#include "compile/prepack.h"
#include "compile/resources.h"
#include "device/device_manager.h"
#include "heddle/status.h"
#include "net/evaluator.h"
#include "net/typed_net.h"
#include "plugin/host.h"

namespace heddle {

struct CompileOptions {
  uint32_t max_threads = 1;
  bool share_memory = true;  // false: every value has bytes of its own (for comparisons)
  bool assign_layouts = true;
  bool prepack = true;
  std::string default_device = "cpu:0";
  int64_t memory_limit = INT64_MAX;  // planned peak per device
  Limits limits;
  Evaluator* evaluator = nullptr;              // for subnets
  std::shared_ptr<PackCache> packs;            // null: packs live in the plan alone
  int64_t* prepare_ns = nullptr;               // time spent in the kernels' create and prepare is added here
  bool commit_late = true;                     // updates of variables form the tail of the plan
  std::shared_ptr<ResourceTable> resources;    // null: asking for one is an error
  DeviceManager* devices = nullptr;            // null: every operator runs on the host
  uint32_t streams = 1;                        // of each device
  const Interruption* interruption = nullptr;  // asked between stages, and between kernels that are made; null: none
};

// Errors: no_kernel (all nodes without one), kernel_failed, limit_exceeded, out_of_memory, missing_resource. Thread-safe.
// `warnings`: what the stages before had to say; the plan keeps them.
Result<std::shared_ptr<const Plan>> compile(TypedNet net, const CompileOptions& options, std::vector<Diagnostic> warnings = {});

}  // namespace heddle
