// Loop: a body run again and again with carried values, whose other outputs of all iterations are stacked.
//
// Inputs: M, cond, carried..., captures...; body: iteration, cond, carried..., captures... -> cond, carried..., scan outputs....
// When the body keeps the types of all carried values they live alternately in two halves of the step's scratch, and scan outputs are
// written in place. Otherwise, and for scan outputs without a bound, values live on the heap: their extents are dynamic, which the plan
// reports as unplanned memory.
#include <algorithm>
#include <cstring>
#include <deque>

#include "control/kept.h"
#include "control/subnet_calls.h"
#include "families.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t trips_port = 0, cond_port = 1, first_carried = 2;
constexpr int64_t planned_trips = 1 << 20;  // more than that is "until cond is false": no sensible bound

// Counts of a node's ports by kind.
struct LoopPorts {
  uint32_t carried = 0, captured = 0, scans = 0;
  Status read(const Attributes& attributes, uint32_t inputs, uint32_t outputs) {
    const int64_t count = attributes.i("captured");
    if (count < 0 || inputs < first_carried || count > inputs - first_carried)
      return invalid("captured is " + std::to_string(count) + " for a loop of " + std::to_string(inputs) + " inputs");
    captured = static_cast<uint32_t>(count);
    carried = inputs - first_carried - captured;
    if (outputs < carried)
      return invalid(std::to_string(carried) + " values are carried but the loop has only " + std::to_string(outputs) + " outputs");
    scans = outputs - carried;
    return {};
  }
};

// The inputs of the body: iteration and carried values without content, the condition, which holds whenever the body runs, and captures as
// they are.
class LoopInputs {
 public:
  Status find(const InferContext& context) {
    HEDDLE_PLUGIN_CHECK(ports.read(context.attributes, context.input_count(), context.output_count()));
    views_.push_back(view_of<int64_t>(nullptr));
    static const bool holds = true;
    views_.push_back(view_of(&holds));
    for (uint32_t i = 0; i < ports.carried; ++i) views_.push_back(without_data(context.input(first_carried + i)));
    for (const heddle_tensor& view : views_) inputs.push_back(&view);
    for (uint32_t i = 0; i < ports.captured; ++i) inputs.push_back(&context.input(first_carried + ports.carried + i));
    return {};
  }
  LoopPorts ports;
  std::vector<const heddle_tensor*> inputs;

 private:
  std::deque<heddle_tensor> views_;
};

// Whether a run of the node executes its body: yes, no, or it is not known before the run.
enum class Entered : uint8_t { yes, no, perhaps };
Entered entered(const InferContext& context) {
  const auto given = [&](uint32_t port, bool goes_on) {
    return !context.has_input(port) ? Entered::yes : !context.known(port) ? Entered::perhaps : goes_on ? Entered::yes : Entered::no;
  };
  const Entered by_trips = given(trips_port, context.has_input(trips_port) && context.known(trips_port) && context.ints(trips_port)[0] > 0);
  const Entered by_cond = given(cond_port, context.has_input(cond_port) && context.known(cond_port) &&
                                               *static_cast<const uint8_t*>(context.input(cond_port).data) != 0);
  if (by_trips == Entered::no || by_cond == Entered::no) return Entered::no;
  return by_trips == Entered::yes && by_cond == Entered::yes ? Entered::yes : Entered::perhaps;
}

// True if the loop is accepted although its body does not fit its inputs: the loop may make no iteration, and its values are the initial
// ones. Scan outputs would have no type then, so there must be none.
bool goes_without_body(const InferContext& context, const LoopPorts& ports, const Status& body) {
  return may_be_left_out(body) && ports.scans == 0 && entered(context) != Entered::yes;
}

Status declare_loop_body(const SubnetContext& context) {
  LoopInputs body;
  HEDDLE_PLUGIN_CHECK(body.find(context));
  const Status declared = context.declare("body", body.inputs);
  return declared.ok() || goes_without_body(context, body.ports, declared) ? Status() : declared;
}

Status infer_loop(InferContext& context) {
  LoopInputs body;
  HEDDLE_PLUGIN_CHECK(body.find(context));
  const LoopPorts& ports = body.ports;
  for (uint32_t i : {trips_port, cond_port})
    if (context.has_input(i) && context.input(i).element_count != 1)
      return invalid(std::string(i == trips_port ? "M" : "cond") + " has shape " + dims_text(context.dims(i)) + ", expected a scalar");
  std::vector<heddle_type> types;
  const Status inferred = Subnet(context.attributes, "body").infer(context, body.inputs, 1 + ports.carried + ports.scans, &types);
  if (!inferred.ok()) {
    if (!goes_without_body(context, ports, inferred)) return inferred;
    for (uint32_t i = 0; i < ports.carried; ++i) {
      const heddle_tensor& initial = context.input(first_carried + i);
      context.set_dtype(i, initial.dtype);
      context.set_dims(i, dims_of(initial));
    }
    return {};
  }
  const std::vector<int64_t> cond = vector_of(dims_of(types[0]));
  if (types[0].dtype != HEDDLE_BOOL || (is_static(types[0]) && std::any_of(cond.begin(), cond.end(), [](int64_t d) { return d != 1; })))
    return invalid("the body's first output says whether to go on: it is to be one bool");
  bool stable = true;
  for (uint32_t i = 0; i < ports.carried; ++i) {
    heddle_type& type = types[1 + i];
    const heddle_tensor& initial = context.input(first_carried + i);
    if (type.dtype != initial.dtype || (is_static(type) && type.rank != initial.rank))
      return invalid("carried value " + std::to_string(i) + " changes its dtype or its number of dimensions in the body");
    if (same_static(type, initial.dtype, dims_of(initial))) continue;
    type.flags |= HEDDLE_TYPE_DYNAMIC;
    stable = false;
  }
  for (uint32_t i = 0; i < ports.carried; ++i) set_type(context, i, types[1 + i]);
  // Scan outputs have room for the largest possible number of iterations.
  const bool goes_on =
      (types[0].flags & HEDDLE_TYPE_TRUE) &&
      (!context.has_input(cond_port) || (context.known(cond_port) && *static_cast<const uint8_t*>(context.input(cond_port).data)));
  const int64_t trips = context.has_input(trips_port) && context.known(trips_port) ? std::max<int64_t>(context.ints(trips_port)[0], 0) : -1;
  for (uint32_t i = 0; i < ports.scans; ++i) {
    const heddle_type& type = types[1 + ports.carried + i];
    const uint32_t output = ports.carried + i;
    HEDDLE_PLUGIN_CHECK(check_rank(static_cast<size_t>(type.rank) + 1));
    context.set_dtype(output, type.dtype);
    if (!stable || !is_static(type) || trips < 0 || trips > planned_trips) {
      std::vector<int64_t> dims = vector_of(dims_of(type));
      if (!is_static(type)) dims.assign(dims.size(), HEDDLE_DYNAMIC_DIM);
      dims.insert(dims.begin(), HEDDLE_DYNAMIC_DIM);
      context.set_dynamic(output, type.rank + 1);
      context.set_dims(output, dims);  // also the dims of a slice, which a loop without an iteration gives
      continue;
    }
    std::vector<int64_t> dims = vector_of(dims_of(type));
    dims.insert(dims.begin(), trips);
    context.set_dims(output, dims);
    if (!goes_on) context.set_bounded(output, 0);
  }
  return {};
}

// A value outside the plan's memory.
struct HeapValue {
  std::vector<char> bytes;
  int64_t dims[HEDDLE_MAX_RANK] = {};
  heddle_tensor view = {};
  void copy(const heddle_tensor& from) {
    std::copy(from.dims, from.dims + from.rank, dims);
    const auto* data = static_cast<const char*>(from.data);
    bytes.assign(data, data + from.byte_size);
    view = view_of(from.dtype, bytes.data(), {dims, from.rank});
  }
};

// The outputs of all iterations so far, one after the other.
struct HeapStack {
  std::vector<char> bytes;
  int64_t dims[HEDDLE_MAX_RANK] = {};
  int64_t count = 0;
  void clear() {
    bytes.clear();
    count = 0;
  }
  Status append(const heddle_tensor& slice) {
    if (count > 0 && !std::equal(slice.dims, slice.dims + slice.rank, dims + 1))
      return invalid("a scan output has shape " + dims_text(dims_of(slice)) + " in iteration " + std::to_string(count) +
                     ", before it had " + dims_text({dims + 1, slice.rank}));
    std::copy(slice.dims, slice.dims + slice.rank, dims + 1);
    const auto* data = static_cast<const char*>(slice.data);
    bytes.insert(bytes.end(), data, data + slice.byte_size);
    ++count;
    return {};
  }
};

class Loop {
 public:
  using moves_only = void;
  Status create(const CreateContext& context) {
    body_ = Subnet(context.attributes, "body");
    return ports_.read(context.attributes, context.input_count(), context.output_count());
  }
  Status prepare(PrepareContext& context) {
    planned_ = true;
    for (uint32_t i = 0; i < context.output_count(); ++i)
      if (const heddle_tensor* y = context.output(i)) planned_ = planned_ && is_planned(*y);
    ScratchArea area, data;
    Frame frame(area, ports_);
    for (uint32_t i = 0; planned_ && i < ports_.carried; ++i) frame.take_buffers(data, i, context.input(first_carried + i)->byte_size);
    for (uint32_t i = 0; planned_ && i < ports_.scans; ++i) frame.take_row(data, i, context.output(ports_.carried + i));
    context.set_scratch(area.used());
    context.set_data_scratch(data.used());
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    ScratchArea area(context.scratch);
    Frame frame(area, ports_);
    Trip& trip = *frame.trip;
    if (!context.resumed) {
      trip = Trip();
      if (const heddle_tensor* trips = context.inputs[trips_port]) trip.most = *static_cast<const int64_t*>(trips->data);
      if (const heddle_tensor* cond = context.inputs[cond_port]) trip.goes_on = *static_cast<const uint8_t*>(cond->data);
      if (planned_) HEDDLE_PLUGIN_CHECK(check_stacks(context, trip.most));
    }
    frame.inputs[0] = &(frame.views[0] = view_of(&trip.iteration));
    frame.inputs[1] = &(frame.views[1] = view_of(HEDDLE_BOOL, &trip.goes_on));
    for (uint32_t i = 0; i < ports_.carried + ports_.captured; ++i) frame.inputs[2 + i] = context.inputs[first_carried + i];
    if (planned_) return run_planned(context, frame);
    Kept<Grown> grown(context, frame.grown, spare_);
    return grown.end_call(run_dynamic(context, frame, *grown));
  }

 private:
  struct Trip {
    int64_t iteration = 0, most = INT64_MAX;
    uint8_t goes_on = 1;
    bool another() const { return iteration < most && goes_on; }
    Status goes_by(const heddle_tensor& cond) {
      if (cond.element_count != 1) return invalid("the body's first output says whether to go on: it is to be one bool");
      goes_on = *static_cast<const uint8_t*>(cond.data);
      return {};
    }
  };
  // The values of a run that are in no plan. Each carried value has two, used alternately: the body may still read one that it passes
  // through while others are written.
  struct Grown {
    std::deque<HeapValue> carried;
    std::deque<HeapStack> stacks;
    HeapValue& of(uint32_t i, int64_t iteration) { return carried[2 * i + iteration % 2]; }
  };
  // The state of one run, in scratch. `trip`, `grown` and the bytes of the carried values last from call to call; each call fills the views
  // and pointers anew. A suspended body may still be reading the bytes.
  struct Frame {
    Frame(ScratchArea& area, const LoopPorts& ports) {
      trip = area.take<Trip>(1);
      grown = area.take<Grown*>(1);
      const uint32_t in = 2 + ports.carried + ports.captured, out = 1 + ports.carried + ports.scans;
      views = area.take<heddle_tensor>(in + out);
      inputs = area.take<const heddle_tensor*>(in);
      outputs = area.take<heddle_tensor*>(out);
      results = views ? views + in : nullptr;
      carried = area.take<heddle_tensor>(2 * ports.carried);
      rows = area.take<void*>(ports.scans);
    }
    void take_buffers(ScratchArea& area, uint32_t i, uint64_t bytes) const {
      for (uint32_t half = 0; half < 2; ++half) {
        void* data = area.take<char>(bytes);
        if (data) carried[2 * i + half].data = data;
      }
    }
    // Reserves a row of scan output i for the body to write if it can not write it in place; null: it writes in place.
    void take_row(ScratchArea& area, uint32_t i, const heddle_tensor* stack) const {
      const int64_t bytes = stack && stack->dims[0] > 0 ? static_cast<int64_t>(stack->byte_size) / stack->dims[0] : 0;
      void* const row = stack && !lies_well(*stack, bytes) ? area.take<char>(static_cast<uint64_t>(bytes)) : nullptr;
      if (rows) rows[i] = row;
    }
    Trip* trip;
    Grown** grown;
    heddle_tensor* views;
    heddle_tensor* results;        // outputs of the body
    const heddle_tensor** inputs;  // of the body
    heddle_tensor** outputs;       // of the body
    heddle_tensor* carried;        // two views of each carried value
    void** rows;                   // by scan output, see take_row
  };
  Status run_planned(const RunContext& context, const Frame& frame) const {
    Trip& trip = *frame.trip;
    ScratchArea data(context.data_scratch);
    for (uint32_t i = 0; i < ports_.carried; ++i) {
      for (uint32_t half = 0; half < 2; ++half) frame.carried[2 * i + half] = without_flags(*context.inputs[first_carried + i]);
      frame.take_buffers(data, i, context.inputs[first_carried + i]->byte_size);
    }
    for (uint32_t i = 0; i < ports_.scans; ++i) frame.take_row(data, i, context.outputs[ports_.carried + i]);
    frame.outputs[0] = &frame.results[0];
    const uint32_t inputs = 2 + ports_.carried + ports_.captured, outputs = 1 + ports_.carried + ports_.scans;
    // The value that the last iteration left; the two halves alternate.
    const auto before = [&](uint32_t i) -> const heddle_tensor* {
      return trip.iteration == 0 ? context.inputs[first_carried + i] : &frame.carried[2 * i + (trip.iteration - 1) % 2];
    };
    for (; trip.another(); ++trip.iteration) {
      frame.results[0] = result_view();
      for (uint32_t i = 0; i < ports_.carried; ++i) {
        frame.inputs[2 + i] = before(i);
        frame.outputs[1 + i] = &frame.carried[2 * i + trip.iteration % 2];
      }
      for (uint32_t i = 0; i < ports_.scans; ++i) place_scan(context, frame, i, trip.iteration);
      HEDDLE_PLUGIN_CHECK(body_.run(context, trip.iteration, {frame.inputs, inputs}, {frame.outputs, outputs}));
      HEDDLE_PLUGIN_CHECK(trip.goes_by(frame.results[0]));
      for (uint32_t i = 0; i < ports_.scans; ++i) HEDDLE_PLUGIN_CHECK(keep_scan(context, frame, i, trip.iteration));
    }
    for (uint32_t i = 0; i < ports_.carried; ++i)
      if (const heddle_tensor* y = context.outputs[i]) HEDDLE_PLUGIN_CHECK(move(context, y->data, before(i)->data, y->byte_size));
    for (uint32_t i = ports_.carried; i < context.output_count; ++i)
      if (const heddle_tensor* y = context.outputs[i]; y && y->extent) HEDDLE_PLUGIN_CHECK(move_value(context, y->extent, trip.iteration));
    return {};
  }

  // Errors: a planned stack has no room for the iterations that M allows.
  Status check_stacks(const RunContext& context, int64_t most) const {
    for (uint32_t i = ports_.carried; i < context.output_count; ++i) {
      const heddle_tensor* stack = context.outputs[i];
      if (stack && most > stack->dims[0])
        return invalid((context.inputs[trips_port] ? "with M [" + std::to_string(most) + "]" : std::string("without M")) +
                       " there could be more iterations than the " + std::to_string(stack->dims[0]) + " that scan output " +
                       std::to_string(i - ports_.carried) + " was prepared for: prepare again with this content");
    }
    return {};
  }

  // Sets where the body writes scan output i of an iteration: a slice of the stack.
  void place_scan(const RunContext& context, const Frame& frame, uint32_t i, int64_t iteration) const {
    const heddle_tensor* stack = context.outputs[ports_.carried + i];
    frame.outputs[1 + ports_.carried + i] = nullptr;
    if (!stack) return;
    heddle_tensor& slice = frame.results[1 + ports_.carried + i];
    slice = row_of(*stack, iteration);
    if (frame.rows[i]) slice.data = frame.rows[i];
    frame.outputs[1 + ports_.carried + i] = &slice;
  }
  Status keep_scan(const RunContext& context, const Frame& frame, uint32_t i, int64_t iteration) const {
    if (!frame.rows[i]) return {};
    const heddle_tensor row = row_of(*context.outputs[ports_.carried + i], iteration);
    return move(context, row.data, frame.rows[i], row.byte_size);
  }

  Status run_dynamic(const RunContext& context, const Frame& frame, Grown& grown) const {
    Trip& trip = *frame.trip;
    if (!context.resumed) {
      grown.carried.resize(2 * size_t{ports_.carried});
      grown.stacks.resize(ports_.scans);
      for (HeapStack& stack : grown.stacks) stack.clear();
      for (uint32_t i = 0; i < ports_.carried; ++i) grown.of(i, 0).copy(*context.inputs[first_carried + i]);
    }
    const uint32_t inputs = 2 + ports_.carried + ports_.captured, outputs = 1 + ports_.carried + ports_.scans;
    for (; trip.another(); ++trip.iteration) {
      for (uint32_t i = 0; i < ports_.carried; ++i) frame.inputs[2 + i] = &grown.of(i, trip.iteration).view;
      for (uint32_t i = 0; i < outputs; ++i) {
        frame.results[i] = result_view();
        const bool wanted = i <= ports_.carried || context.outputs[i - 1];
        frame.outputs[i] = wanted ? &frame.results[i] : nullptr;
      }
      HEDDLE_PLUGIN_CHECK(body_.run(context, trip.iteration, {frame.inputs, inputs}, {frame.outputs, outputs}));
      HEDDLE_PLUGIN_CHECK(trip.goes_by(frame.results[0]));
      for (uint32_t i = 0; i < ports_.carried; ++i) grown.of(i, trip.iteration + 1).copy(frame.results[1 + i]);
      for (uint32_t i = 0; i < ports_.scans; ++i)
        if (frame.outputs[1 + ports_.carried + i]) HEDDLE_PLUGIN_CHECK(grown.stacks[i].append(frame.results[1 + ports_.carried + i]));
    }
    for (uint32_t i = 0; i < ports_.carried; ++i) HEDDLE_PLUGIN_CHECK(give(context, i, grown.of(i, trip.iteration).view));
    for (uint32_t i = 0; i < ports_.scans; ++i) {
      const heddle_tensor* y = context.outputs[ports_.carried + i];
      if (!y) continue;
      HeapStack& stack = grown.stacks[i];
      if (stack.count == 0)
        for (int32_t d = 1; d < y->rank; ++d) stack.dims[d] = std::max<int64_t>(y->dims[d], 0);
      stack.dims[0] = stack.count;
      HEDDLE_PLUGIN_CHECK(give(context, ports_.carried + i, view_of(y->dtype, stack.bytes.data(), {stack.dims, y->rank})));
    }
    return {};
  }

  static Status give(const RunContext& context, uint32_t output, const heddle_tensor& result) {
    const heddle_tensor* y = context.outputs[output];
    if (!y) return {};
    if (!is_planned(*y)) return give_output(context, output, result);
    if (y->extent) *y->extent = result.dims[y->extent_axis];
    if (result.byte_size > 0) std::memcpy(y->data, result.data, result.byte_size);
    return {};
  }
  static heddle_tensor without_flags(heddle_tensor view) {
    view.flags &= ~static_cast<uint32_t>(HEDDLE_TENSOR_CONSTANT);
    return view;
  }

  Subnet body_;
  LoopPorts ports_;
  bool planned_ = true;
  Spare<Grown> spare_;
};

}  // namespace

void add_loop(Builder& plugin) {
  plugin.add(
      Op("Loop", "", 16)
          .doc("Runs body M times, or until the condition that body gives is false. The last `captured` inputs are what body takes from "
               "outside; the others are carried from trip to trip.")
          .shapes(
              "carried values have the dims that body gives them; values that are collected get the number of trips as their first axis")
          .shape_operand("M", dtypes<int64_t>(), true)
          .optional("cond", dtypes<bool>(), nullptr)
          .on_host()
          .any_number("values")
          .variadic_out("outputs", any_dtype, nullptr)
          .subnet("body", SubnetPorts().own_inputs(2).inputs_from(2).own_outputs(1))
          .subnets(declare_loop_body)
          .attribute("captured", 0)
          .infer(infer_loop)
          .cpu<Loop>()
          .kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS | HEDDLE_KERNEL_RESUMES)
          .example(R"(i64[] = 3, -, i32[2] = 1 -2;
    body={"inputs": ["i", "c", "x"], "outputs": ["c", "y", "x"], "nodes": [
      {"type": "Concat", "inputs": ["x", "x"], "outputs": ["two"], "attributes": {"axis": {"int": 0}}},
      {"type": "Slice", "inputs": ["two", "from", "to"], "outputs": ["y"]}],
     "values": [{"name": "from", "kind": "constant", "dtype": "i64", "dims": [1], "data": [1]},
      {"name": "to", "kind": "constant", "dtype": "i64", "dims": [1], "data": [3]}]}
    -> i32[2] = -2 1, i32[3,2] = 1 -2 -2 1 1 -2)",
                   "by hand")
          .example(R"(-, bool[] = 1, i32[] = 1, i32[] = 20; captured=1,
    body={"inputs": ["i", "c", "x", "limit"], "outputs": ["more", "y", "i"], "nodes": [
      {"type": "Add", "inputs": ["x", "x"], "outputs": ["y"]},
      {"type": "Less", "inputs": ["y", "limit"], "outputs": ["more"]}]}
    -> i32[] = 32, i64[5] = 0 1 2 3 4)",
                   "by hand")
          .example(R"(i64[] = 0, bool[] = 1, i32[2] = 7 8;
    body={"inputs": ["i", "c", "x"], "outputs": ["c", "y"], "nodes": [{"type": "Neg", "inputs": ["x"], "outputs": ["y"]}]}
    -> i32[2] = 7 8)",
                   "by hand"));
}

}  // namespace heddle::cpu
