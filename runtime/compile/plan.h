// Plan: what a net became for given input shapes: steps with prepared kernels, dependences, and where every value lies. Immutable; shared
// by all run contexts; keeps its plugins loaded and its constants in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "compile/offsets.h"
#include "net/typed_net.h"
#include "plugin/kernel_call.h"
#include "run/step_graph.h"

namespace heddle {

struct Plan;

// Where a value's bytes are.
struct Placement {
  enum class Kind : uint8_t {
    none,       // nobody reads it, or it is no longer needed (packed constants)
    arena,      // at `offset` of the context's arena
    constant,   // in `constants[index]`
    input,      // the caller's feed `index`
    variable,   // the session's variable `index`
    unplanned,  // dynamic: allocated while running
  };
  Kind kind = Kind::none;
  uint32_t index = 0;
  int64_t offset = 0;
};

struct PlanValue {
  std::string name;
  TensorType type;
  heddle_layout layout = {};
  Placement placement;
  int32_t extent_slot = -1;  // index among the context's extents
};

// A value as one step sees it: the same bytes may be read under another, equivalent layout.
struct Operand {
  ValueId value;  // invalid: absent
  heddle_layout layout = {};
};

// One subnet of a step, compiled for the types inference asked with.
struct NestedPlan {
  std::shared_ptr<const Net> subnet;
  std::shared_ptr<const Plan> plan;
};

struct PlanStep {
  std::string name;
  std::string domain, type;
  std::string device;
  const KernelEntry* kernel = nullptr;
  std::unique_ptr<KernelCall> call;                          // of a late step, which creates its kernel while running
  std::shared_ptr<const KernelCall::Attributes> attributes;  // what `state` may point to
  void* state = nullptr;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  int64_t tiles = 1;
  int64_t scratch_bytes = 0;
  int64_t scratch_offset = 0;
  int64_t thread_scratch_bytes = 0;
  double cost_ns = 0;
  double flops = 0;
  int64_t bytes = 0;  // read and written
  uint32_t random_stream = 0;
  bool late = false;  // extents are inferred and the kernel prepared while running
  bool updates_variable = false;
  std::vector<NestedPlan> nested;
  std::vector<std::string> fused;  // names of the operators in its epilogue
  PlanStep() = default;
  PlanStep(PlanStep&&) noexcept = default;
  PlanStep& operator=(PlanStep&&) noexcept = default;
  ~PlanStep();
};

struct MemoryReport {
  int64_t peak_bytes = 0;  // arena, step scratch and thread scratch: exactly what a context allocates
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;  // of arena_bytes, plus the thread scratch
  const char* lower_bound_kind = "";
  int64_t sum_bytes = 0;         // without any sharing
  int64_t scratch_bytes = 0;     // largest step scratch plus thread scratch
  int64_t persistent_bytes = 0;  // constants and packed constants
};

struct LayoutChange {
  std::string value;
  std::string from, to;
  int64_t bytes = 0;
};

struct Plan {
  std::string net_name;
  std::shared_ptr<const RegistrySnapshot> registry;
  std::vector<PlanValue> values;
  std::vector<PlanStep> steps;
  StepGraph graph;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<std::shared_ptr<const Blob>> constants;
  std::vector<std::shared_ptr<const Blob>> packs;
  std::vector<std::string> variables;  // names, by Placement::index
  int32_t step_counter = -1;           // index of the variable that counts steps
  uint32_t extent_slots = 0;
  int64_t arena_bytes = 0;           // values and step scratch
  int64_t thread_scratch_bytes = 0;  // per executing thread
  uint32_t max_threads = 1;
  MemoryReport memory;
  std::vector<LayoutChange> reorders;
  Limits limits;  // for values whose extents are known only while running
  bool has_late_steps = false;
  bool has_variable_updates = false;

  int64_t context_bytes() const { return arena_bytes + thread_scratch_bytes * max_threads; }
};

// "row-major", "channels-last" or the order, e.g. "(0 2 1)".
std::string layout_text(const heddle_layout& layout);
// Whether bytes in layout `a` are bytes in layout `b` for this shape (dims of 1 may stand anywhere).
bool same_bytes(const heddle_layout& a, const heddle_layout& b, const Shape& shape);

}  // namespace heddle
