// Scan: a body run over the slices of its scanned inputs with state values, whose other outputs are stacked.
//
// Inputs: states..., scanned..., captures...; body: states..., a slice of each scanned..., captures... -> states..., scan outputs....
// States keep their extents and live alternately in two halves of the step's scratch; slices along the first axis are read and written in
// place where kernels can have them there, others go through scratch. Scan outputs whose extents only the body determines get memory with
// their first slice.
#include <algorithm>
#include <cstring>
#include <deque>

#include "control/kept.h"
#include "control/subnet_calls.h"
#include "families.h"
#include "shared/axes.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "support/cpu_api.h"
#include "support/strided_copy.h"

namespace heddle::cpu {
namespace {

// Counts of ports by kind, and the axis and direction of every scanned input and scan output.
struct ScanPorts {
  uint32_t states = 0, scanned = 0, captured = 0, scans = 0;
  std::vector<int64_t> input_axes, input_directions, output_axes, output_directions;

  Status read(const Attributes& attributes, uint32_t inputs, uint32_t outputs) {
    const int64_t slices = attributes.i("num_scan_inputs"), captures = attributes.i("captured");
    if (slices < 1 || captures < 0 || slices > inputs || captures > inputs - slices)
      return invalid("num_scan_inputs is " + std::to_string(slices) + " and captured " + std::to_string(captures) + " for " +
                     std::to_string(inputs) + " inputs");
    scanned = static_cast<uint32_t>(slices);
    captured = static_cast<uint32_t>(captures);
    states = inputs - scanned - captured;
    if (outputs < states)
      return invalid("there are " + std::to_string(states) + " states but only " + std::to_string(outputs) + " outputs");
    scans = outputs - states;
    HEDDLE_PLUGIN_CHECK(list(attributes, "scan_input_axes", scanned, &input_axes));
    HEDDLE_PLUGIN_CHECK(list(attributes, "scan_input_directions", scanned, &input_directions));
    HEDDLE_PLUGIN_CHECK(list(attributes, "scan_output_axes", scans, &output_axes));
    return list(attributes, "scan_output_directions", scans, &output_directions);
  }

 private:
  static Status list(const Attributes& attributes, const char* name, uint32_t count, std::vector<int64_t>* values) {
    *values = attributes.ints(name);
    if (values->empty()) values->assign(count, 0);
    if (values->size() == count) return {};
    return invalid(std::string(name) + " has " + std::to_string(values->size()) + " entries, expected " + std::to_string(count));
  }
};

std::vector<int64_t> without_axis(Dims dims, int axis) {
  std::vector<int64_t> rest = vector_of(dims);
  rest.erase(rest.begin() + axis);
  return rest;
}

Status scanned_axis(const ScanPorts& ports, uint32_t i, int rank, int* axis) {
  return normalize_axis(ports.input_axes[i], rank, axis) ? Status() : axis_outside("scan_input_axes", ports.input_axes[i], rank);
}

// The inputs of the body: states without content, slices, captures as they are.
class ScanInputs {
 public:
  Status find(const InferContext& context) {
    HEDDLE_PLUGIN_CHECK(ports.read(context.attributes, context.input_count(), context.output_count()));
    for (uint32_t i = 0; i < ports.states; ++i) views_.push_back(without_data(context.input(i)));
    for (uint32_t i = 0; i < ports.scanned; ++i) {
      const heddle_tensor& input = context.input(ports.states + i);
      int axis = 0;
      HEDDLE_PLUGIN_CHECK(scanned_axis(ports, i, input.rank, &axis));
      if (length >= 0 && input.dims[axis] != length)
        return invalid("scanned input " + std::to_string(i) + " has " + std::to_string(input.dims[axis]) + " slices, the first one " +
                       std::to_string(length));
      length = input.dims[axis];
      dims_.push_back(without_axis(dims_of(input), axis));
      views_.push_back(view_of(input.dtype, nullptr, dims_of(dims_.back())));
    }
    for (const heddle_tensor& view : views_) inputs.push_back(&view);
    for (uint32_t i = 0; i < ports.captured; ++i) inputs.push_back(&context.input(ports.states + ports.scanned + i));
    return {};
  }
  ScanPorts ports;
  int64_t length = -1;  // how many slices
  std::vector<const heddle_tensor*> inputs;

 private:
  std::deque<heddle_tensor> views_;
  std::deque<std::vector<int64_t>> dims_;
};

Status infer_scan(InferContext& context) {
  ScanInputs body;
  HEDDLE_PLUGIN_CHECK(body.find(context));
  const ScanPorts& ports = body.ports;
  std::vector<heddle_type> types;
  HEDDLE_PLUGIN_CHECK(Subnet(context.attributes, "body").infer(context, body.inputs, ports.states + ports.scans, &types));
  for (uint32_t i = 0; i < ports.states + ports.scans; ++i) {
    context.set_dtype(i, types[i].dtype);
    if (i < ports.states) {
      const bool may_fit = !is_static(types[i]) && types[i].dtype == context.input(i).dtype;
      if (!may_fit && !same_static(types[i], context.input(i).dtype, context.dims(i)))
        return invalid("state " + std::to_string(i) + " is " + dims_text(dims_of(types[i])) + " after the body and " +
                       dims_text(context.dims(i)) + " before, or differs in dtype");
      context.set_dims(i, context.dims(i));
      continue;
    }
    int axis = 0;
    const int64_t wanted = ports.output_axes[i - ports.states];
    if (!normalize_axis(wanted, types[i].rank + 1, &axis)) return axis_outside("scan_output_axes", wanted, types[i].rank + 1);
    std::vector<int64_t> stacked = vector_of(dims_of(types[i]));
    if (!is_static(types[i])) stacked.assign(stacked.size(), HEDDLE_DYNAMIC_DIM);
    stacked.insert(stacked.begin() + axis, body.length);
    HEDDLE_PLUGIN_CHECK(check_rank(stacked.size()));
    if (!is_static(types[i])) context.set_dynamic(i, static_cast<int>(stacked.size()));
    context.set_dims(i, stacked);
  }
  return {};
}

// A tensor as slices along an axis.
struct Sliced {
  Sliced() = default;
  // `gathers`: copies go from the tensor to the slice, else the other way.
  Sliced(const heddle_tensor& tensor, int64_t given_axis, bool is_backward, bool gathers) : backward(is_backward) {
    normalize_axis(given_axis, tensor.rank, &axis);
    dims = without_axis(dims_of(tensor), axis);
    length = tensor.dims[axis];
    dtype = tensor.dtype;
    const auto width = static_cast<int64_t>(byte_width(dtype));
    int64_t whole[HEDDLE_MAX_RANK] = {}, part[HEDDLE_MAX_RANK] = {};
    dense_strides(dims_of(tensor), whole);
    dense_strides(heddle::cpu::dims_of(dims), part);
    stride = whole[axis] * width;
    bytes = count_of(dims) * width;
    in_place = axis == 0 && lies_well(tensor, bytes);
    copy = StridedCopy(width);
    for (int i = 0, j = 0; i < tensor.rank; ++i) {
      if (i == axis) continue;
      const int64_t outer = whole[i] * width, inner = part[j] * width;
      copy.add(tensor.dims[i], gathers ? outer : inner, gathers ? inner : outer);
      ++j;
    }
    copy.finish();
  }
  int64_t offset(int64_t iteration) const { return (backward ? length - 1 - iteration : iteration) * stride; }
  // Copies the slice of an iteration from `whole` to `slice` or the other way. Memory of a device is copied one contiguous run at a time.
  Status copy_slice(const RunContext& context, char* whole, char* slice, int64_t iteration, bool gathers) const {
    char* const at = whole + offset(iteration);
    if (!context.stream) {
      copy.run(gathers ? at : slice, gathers ? slice : at, 0, copy.units());
      return {};
    }
    for (int64_t done = 0, run = 0; done < bytes; done += stride, ++run) {
      char* const here = at + run * length * stride;
      HEDDLE_PLUGIN_CHECK(move(context, gathers ? slice + done : here, gathers ? here : slice + done, static_cast<uint64_t>(stride)));
    }
    return {};
  }

  int axis = 0;
  bool backward = false, in_place = true;
  std::vector<int64_t> dims;
  int64_t length = 0, stride = 0, bytes = 0;  // stride between slices and size of one, in bytes
  heddle_dtype dtype = HEDDLE_DTYPE_NONE;
  StridedCopy copy;
};

// A scan output whose extents its first slice determines.
class FoundStack {
 public:
  // `slice`: the dims of the first slice; slices are stacked along `axis`.
  Status allocate(const RunContext& context, uint32_t output, Dims slice, int64_t length, int axis, bool backward) {
    int64_t dims[HEDDLE_MAX_RANK] = {};
    std::copy(slice.begin(), slice.begin() + axis, dims);
    dims[axis] = length;
    std::copy(slice.begin() + axis, slice.end(), dims + axis + 1);
    const Dims whole = {dims, slice.rank + 1};
    const bool known = view_.rank == whole.rank && std::equal(whole.begin(), whole.end(), dims_);  // from a run before
    std::copy(whole.begin(), whole.end(), dims_);
    view_ = view_of(context.outputs[output]->dtype, allocate_output(context, output, whole), {dims_, whole.rank});
    if (!known) sliced_ = Sliced(view_, axis, backward, false);
    if (!view_.data && view_.byte_size > 0) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for output " + std::to_string(output)};
    return {};
  }
  Status write(const heddle_tensor& slice, int64_t iteration) const {
    if (!std::equal(sliced_.dims.begin(), sliced_.dims.end(), slice.dims, slice.dims + slice.rank))
      return invalid("a scan output has shape " + dims_text({slice.dims, slice.rank}) + " in iteration " + std::to_string(iteration) +
                     ", before it had " + dims_text(cpu::dims_of(sliced_.dims)));
    sliced_.copy.run(static_cast<const char*>(slice.data), static_cast<char*>(view_.data) + sliced_.offset(iteration), 0,
                     sliced_.copy.units());
    return {};
  }

 private:
  int64_t dims_[HEDDLE_MAX_RANK] = {};
  heddle_tensor view_ = {};
  Sliced sliced_;
};

class Scan {
 public:
  using moves_only = void;
  Status create(const CreateContext& context) {
    body_ = Subnet(context.attributes, "body");
    return ports_.read(context.attributes, context.input_count(), context.output_count());
  }
  Status prepare(PrepareContext& context) {
    scanned_.clear();
    scans_.assign(ports_.scans, {});
    state_bytes_.clear();
    for (uint32_t i = 0; i < ports_.states; ++i) state_bytes_.push_back(context.input(i)->byte_size);
    for (uint32_t i = 0; i < ports_.scanned; ++i)
      scanned_.emplace_back(*context.input(ports_.states + i), ports_.input_axes[i], ports_.input_directions[i] != 0, true);
    found_.assign(ports_.scans, 0);
    for (uint32_t i = 0; i < ports_.scans; ++i) {
      const heddle_tensor* y = context.output(ports_.states + i);
      found_[i] = y && !is_planned(*y);
      if (y && !found_[i]) scans_[i] = Sliced(*y, ports_.output_axes[i], ports_.output_directions[i] != 0, false);
    }
    ScratchArea area, data;
    Frame frame(area, data, *this);
    context.set_scratch(area.used());
    context.set_data_scratch(data.used());
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    ScratchArea area(context.scratch), data(context.data_scratch);
    Frame frame(area, data, *this);
    for (uint32_t i = ports_.states; i < context.input_count; ++i) frame.inputs[i] = context.inputs[i];
    for (uint32_t i = 0; i < ports_.states; ++i)
      for (uint32_t half = 0; half < 2; ++half) frame.views[2 * i + half] = state_view(context, frame, i, half);
    if (!context.resumed) *frame.iteration = 0;
    if (std::count(found_.begin(), found_.end(), 1) == 0) return run_trips(context, frame, nullptr);
    Kept<std::vector<FoundStack>> stacks(context, frame.stacks, spare_);
    (*stacks).resize(ports_.scans);
    return stacks.end_call(run_trips(context, frame, (*stacks).data()));
  }

 private:
  // The state of one run, in scratch. `iteration`, `stacks` and the bytes that `states` and `slices` point to last from call to call; each
  // call fills the views and pointers anew. A suspended body may still be reading the bytes.
  struct Frame {
    Frame(ScratchArea& area, ScratchArea& data, const Scan& scan) {
      const ScanPorts& p = scan.ports_;
      iteration = area.take<int64_t>(1);
      stacks = area.take<std::vector<FoundStack>*>(1);
      inputs = area.take<const heddle_tensor*>(p.states + p.scanned + p.captured);
      outputs = area.take<heddle_tensor*>(p.states + p.scans);
      views = area.take<heddle_tensor>(2 * p.states + p.scanned + p.scans);
      states = area.take<void*>(2 * p.states);
      slices = area.take<void*>(p.scanned + p.scans);
      for (uint32_t i = 0; i < 2 * p.states; ++i) keep(states, i, data.take<char>(scan.state_bytes_[i / 2]));
      for (uint32_t i = 0; i < p.scanned; ++i) keep(slices, i, data.take<char>(buffer_bytes(scan.scanned_[i])));
      for (uint32_t i = 0; i < p.scans; ++i) keep(slices, p.scanned + i, data.take<char>(buffer_bytes(scan.scans_[i])));
    }
    static uint64_t buffer_bytes(const Sliced& sliced) { return sliced.in_place ? 0 : static_cast<uint64_t>(sliced.bytes); }
    static void keep(void** list, uint32_t i, void* at) {
      if (list) list[i] = at;
    }
    int64_t* iteration;
    std::vector<FoundStack>** stacks;
    const heddle_tensor** inputs;
    heddle_tensor** outputs;
    heddle_tensor* views;  // two of each state, then slices of scanned inputs, then of scan outputs
    void** states;
    void** slices;
  };

  static heddle_tensor state_view(const RunContext& context, const Frame& frame, uint32_t state, int64_t half) {
    return view_of(context.inputs[state]->dtype, frame.states[2 * state + half], dims_of(*context.inputs[state]));
  }
  // `stacks`: by scan output, used where the body determines its extents.
  Status run_trips(const RunContext& context, const Frame& frame, FoundStack* stacks) const {
    const int64_t length = scanned_[0].length;
    int64_t& iteration = *frame.iteration;
    // The state that the last iteration left; the two halves alternate.
    const auto before = [&](uint32_t i) -> const heddle_tensor* {
      return iteration == 0 ? context.inputs[i] : &frame.views[2 * i + (iteration - 1) % 2];
    };
    for (uint32_t i = 0; length == 0 && i < ports_.scans; ++i)
      if (found_[i]) HEDDLE_PLUGIN_CHECK(begin_stack(context, stacks[i], i, nullptr, 0));
    bool under_way = context.resumed != 0;  // the body may be reading its slices
    for (; iteration < length; ++iteration, under_way = false) {
      for (uint32_t i = 0; i < ports_.states; ++i) {
        frame.inputs[i] = before(i);
        heddle_tensor& view = frame.views[2 * i + iteration % 2];
        view = state_view(context, frame, i, iteration % 2);  // anew: without bytes the host has set a pointer that is invalid now
        frame.outputs[i] = &view;
      }
      for (uint32_t i = 0; i < ports_.scanned; ++i) HEDDLE_PLUGIN_CHECK(read_slice(context, frame, i, iteration, !under_way));
      for (uint32_t i = 0; i < ports_.scans; ++i) place_slice(context, frame, i, iteration);
      HEDDLE_PLUGIN_CHECK(
          body_.run(context, iteration, {frame.inputs, context.input_count}, {frame.outputs, ports_.states + ports_.scans}));
      for (uint32_t i = 0; i < ports_.scans; ++i) {
        if (!found_[i]) {
          HEDDLE_PLUGIN_CHECK(write_slice(context, frame, i, iteration));
          continue;
        }
        const heddle_tensor& slice = *frame.outputs[ports_.states + i];
        if (iteration == 0) HEDDLE_PLUGIN_CHECK(begin_stack(context, stacks[i], i, &slice, length));
        HEDDLE_PLUGIN_CHECK(stacks[i].write(slice, iteration));
      }
    }
    for (uint32_t i = 0; i < ports_.states; ++i)
      if (const heddle_tensor* y = context.outputs[i]) HEDDLE_PLUGIN_CHECK(move(context, y->data, before(i)->data, y->byte_size));
    return {};
  }

  Status read_slice(const RunContext& context, const Frame& frame, uint32_t i, int64_t iteration, bool copies) const {
    const Sliced& sliced = scanned_[i];
    auto* const whole = static_cast<char*>(context.inputs[ports_.states + i]->data);
    void* const data = sliced.in_place ? whole + sliced.offset(iteration) : frame.slices[i];
    if (!sliced.in_place && copies) HEDDLE_PLUGIN_CHECK(sliced.copy_slice(context, whole, static_cast<char*>(data), iteration, true));
    heddle_tensor& view = frame.views[2 * ports_.states + i];
    view = view_of(sliced.dtype, data, dims_of(sliced.dims));
    frame.inputs[ports_.states + i] = &view;
    return {};
  }
  void place_slice(const RunContext& context, const Frame& frame, uint32_t i, int64_t iteration) const {
    const Sliced& sliced = scans_[i];
    const heddle_tensor* stack = context.outputs[ports_.states + i];
    frame.outputs[ports_.states + i] = nullptr;
    if (!stack) return;
    if (found_[i]) {
      heddle_tensor& slice = frame.views[2 * ports_.states + ports_.scanned + i];
      slice = result_view();
      frame.outputs[ports_.states + i] = &slice;
      return;
    }
    void* data = sliced.in_place ? static_cast<char*>(stack->data) + sliced.offset(iteration) : frame.slices[ports_.scanned + i];
    heddle_tensor& view = frame.views[2 * ports_.states + ports_.scanned + i];
    view = view_of(sliced.dtype, data, dims_of(sliced.dims));
    frame.outputs[ports_.states + i] = &view;
  }
  Status write_slice(const RunContext& context, const Frame& frame, uint32_t i, int64_t iteration) const {
    const Sliced& sliced = scans_[i];
    const heddle_tensor* stack = context.outputs[ports_.states + i];
    if (!stack || sliced.in_place) return {};
    return sliced.copy_slice(context, static_cast<char*>(stack->data), static_cast<char*>(frame.slices[ports_.scanned + i]), iteration,
                             false);
  }

  // `slice`: the first one. Without one (no iteration) its extents are unknown and set to 0.
  Status begin_stack(const RunContext& context, FoundStack& stack, uint32_t i, const heddle_tensor* slice, int64_t length) const {
    const heddle_tensor& y = *context.outputs[ports_.states + i];
    int axis = 0;
    if (!normalize_axis(ports_.output_axes[i], y.rank, &axis)) return axis_outside("scan_output_axes", ports_.output_axes[i], y.rank);
    const int64_t none[HEDDLE_MAX_RANK] = {};
    const Dims dims = slice ? dims_of(*slice) : Dims{none, y.rank - 1};
    if (dims.rank + 1 != y.rank)
      return invalid("a scan output has " + std::to_string(dims.rank) + " dimensions, expected " + std::to_string(y.rank - 1));
    return stack.allocate(context, ports_.states + i, dims, length, axis, ports_.output_directions[i] != 0);
  }

  Subnet body_;
  ScanPorts ports_;
  std::vector<Sliced> scanned_, scans_;
  std::vector<char> found_;  // by scan output: the body determines its extents
  std::vector<uint64_t> state_bytes_;
  Spare<std::vector<FoundStack>> spare_;
};

}  // namespace

void add_scan(Builder& plugin) {
  plugin.add(
      Op("Scan", "", 16)
          .doc("Runs body for each slice of the scanned inputs, and carries states from trip to trip. The inputs are states, scanned "
               "values and `captured` values from outside.")
          .shapes("states have their own dims; collected outputs get the number of trips as the axis that scan_output_axes says")
          .any_number("values")
          .variadic_out("outputs", any_dtype, nullptr)
          .subnet("body", SubnetPorts())
          .subnets(declare_body<ScanInputs>)
          .required("num_scan_inputs", HEDDLE_ATTRIBUTE_INT)
          .attribute("captured", 0)
          .maybe("scan_input_axes", HEDDLE_ATTRIBUTE_INTS)
          .maybe("scan_input_directions", HEDDLE_ATTRIBUTE_INTS)
          .maybe("scan_output_axes", HEDDLE_ATTRIBUTE_INTS)
          .maybe("scan_output_directions", HEDDLE_ATTRIBUTE_INTS)
          .infer(infer_scan)
          .cpu<Scan>()
          .kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS | HEDDLE_KERNEL_RESUMES)
          .example(R"(i32[2] = 0 10, i32[3,2] = 1 2 3 4 5 6; num_scan_inputs=1,
    body={"inputs": ["sum", "x"], "outputs": ["y", "z"], "nodes": [
      {"type": "Add", "inputs": ["sum", "x"], "outputs": ["y"]}, {"type": "Identity", "inputs": ["y"], "outputs": ["z"]}]}
    -> i32[2] = 9 22, i32[3,2] = 1 12 4 16 9 22)",
                   "by hand")
          .example(
              R"(i32[2] = 0 10, i32[2,3] = 1 3 5 2 4 6, i32[2] = 100 200; num_scan_inputs=1, captured=1, scan_input_axes=[1], scan_input_directions=[1],
    scan_output_axes=[1], scan_output_directions=[1],
    body={"inputs": ["sum", "x", "more"], "outputs": ["y", "z"], "nodes": [
      {"type": "Add", "inputs": ["sum", "x"], "outputs": ["y"]}, {"type": "Add", "inputs": ["y", "more"], "outputs": ["z"]}]}
    -> i32[2] = 9 22, i32[2,3] = 109 108 105 222 220 216)",
              "by hand")
          .example(R"(i32[0,2]; num_scan_inputs=1,
    body={"inputs": ["x"], "outputs": ["y"], "nodes": [{"type": "Identity", "inputs": ["x"], "outputs": ["y"]}]}
    -> i32[0,2])",
                   "by hand")
          .example(R"(i32[3] = 5 6 -7; num_scan_inputs=1,
    body={"inputs": ["x"], "outputs": ["y"], "nodes": [{"type": "Identity", "inputs": ["x"], "outputs": ["y"]}]}
    -> i32[3] = 5 6 -7)",
                   "by hand"));
}

}  // namespace heddle::cpu
