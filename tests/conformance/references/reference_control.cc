// If, Loop and Scan. Each subnet has a name, a text and a function that computes it.
#include <algorithm>
#include <functional>

#include "conformance/reference.h"

namespace heddle::conformance {
namespace reference_control {
namespace {

using Values = std::vector<Numbers>;

// ---------------------------------------------------------------- subnets

// The sum as Add gives it: rounded, or wrapped around.
Numbers sum(const Numbers& a, const Numbers& b) {
  Call call;
  call.inputs = {a, b};
  return elementwise(call, a.dtype, [&](const std::vector<Number>& x) { return rounded(a.dtype, x[0] + x[1]); });
}

// Returns slice `index` along an axis; if the tensor has none there, a tensor of the shape that one would have.
Numbers slice(const Numbers& from, int axis, int64_t index) {
  Shape shape;
  for (int d = 0; d < from.shape.rank(); ++d)
    if (d != axis) shape.push_back(from.shape[d]);
  Numbers to = zeros(from.dtype, shape);
  for (int64_t i = 0; i < to.size() && from.shape[axis] > 0; ++i) {
    Ints at = position_of(i, shape);
    at.insert(at.begin() + axis, index);
    to.values[static_cast<size_t>(i)] = from.values[static_cast<size_t>(flat_of(at, from.shape))];
  }
  return to;
}
// Stacks slices into a tensor. `like`: one of them, whose shape is used if there are none.
Numbers stacked(const Values& slices, const Numbers& like, int axis) {
  Shape shape;
  for (int d = 0; d <= like.shape.rank(); ++d)
    shape.push_back(d == axis ? static_cast<int64_t>(slices.size()) : like.shape[d < axis ? d : d - 1]);
  Numbers to = zeros(like.dtype, shape);
  for (int64_t i = 0; i < to.size(); ++i) {
    Ints at = position_of(i, shape);
    const auto of = static_cast<size_t>(at[static_cast<size_t>(axis)]);
    at.erase(at.begin() + axis);
    to.values[static_cast<size_t>(i)] = slices[of].values[static_cast<size_t>(flat_of(at, like.shape))];
  }
  return to;
}

Numbers reversed(const Numbers& x) {
  Values rows;
  for (int64_t i = x.shape[0]; i-- > 0;) rows.push_back(slice(x, 0, i));
  return stacked(rows, slice(x, 0, 0), 0);
}
Numbers doubled_in_length(const Numbers& x) {
  Numbers two = x;
  two.shape[0] *= 2;
  two.values.insert(two.values.end(), x.values.begin(), x.values.end());
  return two;
}
Numbers scalar(DType dtype, Number value) {
  return {dtype, {}, {value}, {}};
}
Numbers list(const Ints& numbers) {
  return {DType::i64, {static_cast<int64_t>(numbers.size())}, std::vector<Number>(numbers.begin(), numbers.end()), {}};
}

struct Subnet {
  const char* name;
  const char* json;  // the text after the name
  std::function<Values(const Values&)> run;
};

std::vector<Subnet> branches() {
  return {
      {"same", R"("inputs": ["x"], "outputs": ["y"], "nodes": [{"type": "Identity", "inputs": ["x"], "outputs": ["y"]}]})",
       [](const Values& v) { return v; }},
      {"handed_on", R"("inputs": ["x"], "outputs": ["x"], "nodes": []})", [](const Values& v) { return v; }},
      {"twice",
       R"("inputs": ["x"], "outputs": ["y"], "nodes": [
        {"type": "Concat", "inputs": ["x", "x"], "outputs": ["y"], "attributes": {"axis": {"int": 0}}}]})",
       [](const Values& v) { return Values{doubled_in_length(v[0])}; }},
      {"added", R"("inputs": ["x", "y"], "outputs": ["z", "x"], "nodes": [{"type": "Add", "inputs": ["x", "y"], "outputs": ["z"]}]})",
       [](const Values& v) {
         return Values{sum(v[0], v[1]), v[0]};
       }},
      {"swapped", R"("inputs": ["x", "y"], "outputs": ["y", "x"], "nodes": []})",
       [](const Values& v) {
         return Values{v[1], v[0]};
       }},
      {"shape", R"("inputs": ["x"], "outputs": ["n", "x"], "nodes": [{"type": "Shape", "inputs": ["x"], "outputs": ["n"]}]})",
       [](const Values& v) {
         return Values{list(Ints(v[0].shape.begin(), v[0].shape.end())), v[0]};
       }},
      {"constant",
       R"("inputs": [], "outputs": ["c"], "nodes": [], "values": [
        {"name": "c", "kind": "constant", "dtype": "i64", "dims": [2], "data": [3, 4]}]})",
       [](const Values&) {
         return Values{list({3, 4})};
       }},
      {"other_constant",
       R"("inputs": [], "outputs": ["c"], "nodes": [], "values": [
        {"name": "c", "kind": "constant", "dtype": "i64", "dims": [3], "data": [5, 6, 7]}]})",
       [](const Values&) {
         return Values{list({5, 6, 7})};
       }},
  };
}

// Inputs: iteration, condition, carried, captured.
std::vector<Subnet> bodies_of_loops() {
  return {
      {"turned", R"("inputs": ["i", "c", "x"], "outputs": ["c", "back", "x", "i"], "nodes": [
        {"type": "Slice", "inputs": ["x", "-1", "least", "0", "-1"], "outputs": ["back"]}], "values": [
        {"name": "-1", "kind": "constant", "dtype": "i64", "dims": [1], "data": [-1]},
        {"name": "least", "kind": "constant", "dtype": "i64", "dims": [1], "data": [-9223372036854775808]},
        {"name": "0", "kind": "constant", "dtype": "i64", "dims": [1], "data": [0]}]})",
       [](const Values& v) {
         return Values{v[1], reversed(v[2]), v[2], v[0]};
       }},
      {"growing",
       R"("inputs": ["i", "c", "x"], "outputs": ["c", "two", "i"], "nodes": [
        {"type": "Concat", "inputs": ["x", "x"], "outputs": ["two"], "attributes": {"axis": {"int": 0}}}]})",
       [](const Values& v) {
         return Values{v[1], doubled_in_length(v[2]), v[0]};
       }},
      {"growing_by_turns",
       R"("inputs": ["i", "c", "a", "b"], "outputs": ["c", "b", "two", "i"], "nodes": [
        {"type": "Concat", "inputs": ["a", "a"], "outputs": ["two"], "attributes": {"axis": {"int": 0}}}]})",
       [](const Values& v) {
         return Values{v[1], v[3], doubled_in_length(v[2]), v[0]};
       }},
      {"until",
       R"("inputs": ["i", "c", "x", "by", "limit"], "outputs": ["more", "y", "x", "i"], "nodes": [
        {"type": "Add", "inputs": ["x", "by"], "outputs": ["y"]}, {"type": "Less", "inputs": ["y", "limit"], "outputs": ["more"]}]})",
       [](const Values& v) {
         const Numbers y = sum(v[2], v[3]);
         return Values{scalar(DType::boolean, y.values[0] < v[4].values[0] ? 1 : 0), y, v[2], v[0]};
       }},
      {"fibonacci",
       R"("inputs": ["i", "c", "a", "b"], "outputs": ["c", "b", "s", "a"], "nodes": [
        {"type": "Add", "inputs": ["a", "b"], "outputs": ["s"]}]})",
       [](const Values& v) {
         return Values{v[1], v[3], sum(v[2], v[3]), v[2]};
       }},
      {"exchanged", R"("inputs": ["i", "c", "a", "b"], "outputs": ["c", "b", "a"], "nodes": []})",
       [](const Values& v) {
         return Values{v[1], v[3], v[2]};
       }},
      {"collecting", R"("inputs": ["i", "c", "x"], "outputs": ["c", "x", "i"], "nodes": []})",
       [](const Values& v) {
         return Values{v[1], v[2], v[0]};
       }},
      {"stepped",
       R"("inputs": ["i", "c", "x", "by"], "outputs": ["c", "y", "x"], "nodes": [{"type": "Add", "inputs": ["x", "by"], "outputs": ["y"]}]})",
       [](const Values& v) {
         return Values{v[1], sum(v[2], v[3]), v[2]};
       }},
  };
}

// Inputs: states, slices, captured.
std::vector<Subnet> bodies_of_scans() {
  return {
      {"delayed", R"("inputs": ["s", "x"], "outputs": ["x", "s"], "nodes": []})",
       [](const Values& v) {
         return Values{v[1], v[0]};
       }},
      {"summed",
       R"("inputs": ["s", "x"], "outputs": ["t", "u"], "nodes": [{"type": "Add", "inputs": ["s", "x"], "outputs": ["t"]},
        {"type": "Identity", "inputs": ["t"], "outputs": ["u"]}]})",
       [](const Values& v) {
         return Values{sum(v[0], v[1]), sum(v[0], v[1])};
       }},
      {"zipped",
       R"("inputs": ["x", "y", "more"], "outputs": ["s", "t", "y"], "nodes": [{"type": "Add", "inputs": ["x", "y"], "outputs": ["s"]},
        {"type": "Add", "inputs": ["s", "more"], "outputs": ["t"]}]})",
       [](const Values& v) {
         return Values{sum(v[0], v[1]), sum(sum(v[0], v[1]), v[2]), v[1]};
       }},
      {"two_states",
       R"("inputs": ["a", "b", "x"], "outputs": ["b", "s", "a", "x"], "nodes": [{"type": "Add", "inputs": ["a", "x"], "outputs": ["s"]}]})",
       [](const Values& v) {
         return Values{v[1], sum(v[0], v[2]), v[0], v[2]};
       }},
      {"nonzero", R"("inputs": ["x"], "outputs": ["n"], "nodes": [{"type": "NonZero", "inputs": ["x"], "outputs": ["n"]}]})",
       [](const Values& v) {
         Ints positions;
         for (size_t i = 0; i < v[0].values.size(); ++i)
           if (v[0].values[i] != 0) positions.push_back(static_cast<int64_t>(i));
         Numbers row = list(positions);
         row.shape = {1, row.shape[0]};
         return Values{row};
       }},
  };
}

const std::vector<Subnet>& subnets() {
  static const auto& all = *new std::vector<Subnet>([] {
    std::vector<Subnet> joined = branches();
    for (const auto& more : {bodies_of_loops(), bodies_of_scans()}) joined.insert(joined.end(), more.begin(), more.end());
    return joined;
  }());
  return all;
}

const Subnet& subnet(const std::string& name) {
  return *std::find_if(subnets().begin(), subnets().end(), [&](const Subnet& s) { return name == s.name; });
}
// Returns NAME={...} for a call.
std::string net(const std::string& attribute, const std::string& name) {
  return attribute + "={\"name\": \"" + name + "\", " + subnet(name).json;
}

Values inputs_from(const Call& call, size_t first) {
  Values values;
  for (size_t i = first; i < call.inputs.size(); ++i) values.push_back(call[i]);
  return values;
}
void append(Values& to, const Values& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// ---------------------------------------------------------------- If

Values if_branch(const Call& call) {
  return subnet(call.net(call[0].values[0] != 0 ? "then_branch" : "else_branch")).run(inputs_from(call, 1));
}

Row if_row() {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& captures, const std::string& then_branch, const std::string& else_branch,
                       const std::string& outputs_then, const std::string& outputs_else) {
    for (const char* cond : {"bool[] = 1", "bool[1] = 0"}) {
      const bool taken = cond == std::string("bool[] = 1");
      cases.push_back({kind, cond + (captures.empty() ? "" : ", " + captures) + "; " + net("then_branch", then_branch) + ", " +
                                 net("else_branch", else_branch) + " -> " + (taken ? outputs_then : outputs_else)});
    }
  };
  add(Kind::odd, "T[3,7]", "same", "handed_on", "T[3,7]", "T[3,7]");
  add(Kind::odd, "T[3,7]", "handed_on", "twice", "T[3,7]", "T[6,7]");
  add(Kind::odd, "f32[5] = nan -0 inf -inf 1", "twice", "same", "f32[10]", "f32[5]");
  add(Kind::odd, "f32[17], f32[17]", "added", "swapped", "f32[17], f32[17]", "f32[17], f32[17]");
  add(Kind::odd, "", "constant", "other_constant", "i64[2]", "i64[3]");
  add(Kind::odd, "T[]", "same", "same", "T[]", "T[]");
  add(Kind::odd, "f32[3,5]", "shape", "shape", "i64[2], f32[3,5]", "i64[2], f32[3,5]");
  add(Kind::empty, "T[0,7]", "same", "twice", "T[0,7]", "T[0,7]");
  add(Kind::broadcast, "i32[3,1], i32[7]", "added", "swapped", "i32[3,7], i32[3,1]", "i32[7], i32[3,1]");
  add(Kind::broadcast, "i32[3,1], i32[3,5]", "swapped", "added", "i32[3,5], i32[3,1]", "i32[3,5], i32[3,1]");
  add(Kind::rank, "f32[1,2,1,2,1,2,1,3]", "twice", "same", "f32[2,2,1,2,1,2,1,3]", "f32[1,2,1,2,1,2,1,3]");
  add(Kind::large, "f32[301,257]", "same", "twice", "f32[301,257]", "f32[602,257]");
  return {.type = "If",
          .reference = if_branch,
          .cases = std::move(cases),
          .without = {{Kind::strided, "it hands on whole tensors"}},
          .one_tile = true};
}

// ---------------------------------------------------------------- Loop

// If cond is absent, the body's condition counts all the same, as in ONNX Runtime and in ONNX's reference.
Values loop(const Call& call) {
  const Subnet& body = subnet(call.net("body"));
  Values carried = inputs_from(call, 2);
  const Values captured(carried.end() - call.i("captured", 0), carried.end());
  carried.resize(carried.size() - captured.size());
  const auto one_trip = [&](int64_t trip) {
    Values inputs = {scalar(DType::i64, static_cast<Number>(trip)), scalar(DType::boolean, 1)};
    append(inputs, carried);
    append(inputs, captured);
    return body.run(inputs);
  };
  // The shape of a slice if there is none.
  const Values like = one_trip(0);
  std::vector<Values> slices(like.size() - 1 - carried.size());
  bool goes_on = !call.has(1) || call[1].values[0] != 0;
  for (int64_t trip = 0; goes_on && (!call.has(0) || trip < call.list(0)[0]); ++trip) {
    const Values outputs = one_trip(trip);
    goes_on = outputs[0].values[0] != 0;
    std::copy_n(outputs.begin() + 1, carried.size(), carried.begin());
    for (size_t i = 0; i < slices.size(); ++i) slices[i].push_back(outputs[1 + carried.size() + i]);
  }
  for (size_t i = 0; i < slices.size(); ++i) carried.push_back(stacked(slices[i], like[like.size() - slices.size() + i], 0));
  return carried;
}

Row loop_row() {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& inputs, const std::string& body, const std::string& outputs,
                       const std::string& attributes = "") {
    cases.push_back({kind, inputs + "; " + attributes + net("body", body) + " -> " + outputs});
  };
  add(Kind::odd, "i64[] = 5, -, T[3,7]", "turned", "T[3,7], T[5,3,7], i64[5]");
  add(Kind::odd, "i64[1] = 4, bool[1] = 1, f32[17]", "turned", "f32[17], f32[4,17], i64[4]");
  add(Kind::odd, "i64[] = 1, bool[] = 1, f32[5] = nan -0 inf -inf 1", "turned", "f32[5], f32[1,5], i64[1]");
  add(Kind::odd, "i64[] = 4, -, T[3,2]", "growing", "T[48,2], i64[4]");
  add(Kind::odd, "i64[] = 5, -, i32[3], i32[2]", "growing_by_turns", "i32[8], i32[24], i64[5]");
  add(Kind::odd, "i64[] = 100, -, f32[] = 0, f32[] = 0.3, f32[] = 2", "until", "f32[], f32[7], i64[7]", "captured=2, ");
  add(Kind::odd, "-, bool[] = 1, i32[] = 1, i32[] = 3, i32[] = 20", "until", "i32[], i32[7], i64[7]", "captured=2, ");
  add(Kind::odd, "-, -, i32[] = 1, i32[] = 3, i32[] = 2", "until", "i32[], i32[1], i64[1]", "captured=2, ");
  add(Kind::odd, "i64[] = 3, bool[] = 1, i32[] = 1, i32[] = 3, i32[] = 20", "until", "i32[], i32[3], i64[3]", "captured=2, ");
  add(Kind::odd, "i64[] = 11, -, i32[3], i32[3]", "fibonacci", "i32[3], i32[3], i32[11,3]");
  add(Kind::odd, "i64[] = 7, -, T[5], T[5]", "exchanged", "T[5], T[5]");
  add(Kind::odd, "i64[] = 8, -, T[5], T[5]", "exchanged", "T[5], T[5]");
  add(Kind::odd, "i64[] = 9, -, T[]", "collecting", "T[], i64[9]");
  add(Kind::empty, "i64[] = 0, -, T[3,7]", "turned", "T[3,7], T[0,3,7], i64[0]");
  add(Kind::empty, "i64[] = 3, bool[] = 0, T[3,7]", "turned", "T[3,7], T[0,3,7], i64[0]");
  add(Kind::empty, "i64[] = -2, -, f32[3,7]", "turned", "f32[3,7], f32[0,3,7], i64[0]");
  add(Kind::empty, "i64[] = 3, -, T[3,0]", "turned", "T[3,0], T[3,3,0], i64[3]");
  add(Kind::broadcast, "i64[] = 4, -, i32[3,5], i32[5]", "stepped", "i32[3,5], i32[4,3,5]", "captured=1, ");
  add(Kind::rank, "i64[] = 3, -, f32[3,2,1,2,1,2,1]", "turned", "f32[3,2,1,2,1,2,1], f32[3,3,2,1,2,1,2,1], i64[3]");
  add(Kind::large, "i64[] = 5, -, f32[301,57]", "turned", "f32[301,57], f32[5,301,57], i64[5]");
  add(Kind::large, "i64[] = 1003, -, i32[3]", "collecting", "i32[3], i64[1003]");
  add(Kind::large, "i64[] = 9, -, u8[77]", "growing", "u8[39424], i64[9]");
  return {.type = "Loop",
          .reference = loop,
          .cases = std::move(cases),
          .without = {{Kind::strided, "it hands on whole tensors"}},
          .one_tile = true};
}

// ---------------------------------------------------------------- Scan

Values scan(const Call& call) {
  const Subnet& body = subnet(call.net("body"));
  Values states = inputs_from(call, 0);
  const auto scanned_count = static_cast<size_t>(call.i("num_scan_inputs", 0));
  const Values captured(states.end() - call.i("captured", 0), states.end());
  states.resize(states.size() - captured.size());
  const Values scanned(states.end() - static_cast<int64_t>(scanned_count), states.end());
  states.resize(states.size() - scanned_count);

  const Ints axes = call.ints("scan_input_axes", Ints(scanned_count, 0)), back = call.ints("scan_input_directions", Ints(scanned_count, 0));
  const auto axis_of = [&](size_t i) { return static_cast<int>(positive_axis(axes[i], scanned[i].shape.rank())); };
  const int64_t trips = scanned[0].shape[axis_of(0)];
  const auto one_trip = [&](int64_t trip) {
    Values inputs = states;
    for (size_t i = 0; i < scanned_count; ++i) inputs.push_back(slice(scanned[i], axis_of(i), back[i] != 0 ? trips - 1 - trip : trip));
    append(inputs, captured);
    return body.run(inputs);
  };
  const Values like = one_trip(0);
  std::vector<Values> slices(like.size() - states.size());
  for (int64_t trip = 0; trip < trips; ++trip) {
    const Values outputs = one_trip(trip);
    std::copy_n(outputs.begin(), states.size(), states.begin());
    for (size_t i = 0; i < slices.size(); ++i) slices[i].push_back(outputs[states.size() + i]);
  }
  const Ints output_axes = call.ints("scan_output_axes", Ints(slices.size(), 0)),
             output_back = call.ints("scan_output_directions", Ints(slices.size(), 0));
  for (size_t i = 0; i < slices.size(); ++i) {
    const Numbers& one = like[like.size() - slices.size() + i];
    if (output_back[i] != 0) std::reverse(slices[i].begin(), slices[i].end());
    states.push_back(stacked(slices[i], one, static_cast<int>(positive_axis(output_axes[i], one.shape.rank() + 1))));
  }
  return states;
}

Row scan_row() {
  std::vector<Case> cases;
  const auto add = [&](Kind kind, const std::string& inputs, const std::string& attributes, const std::string& body,
                       const std::string& outputs) {
    cases.push_back({kind, inputs + "; num_scan_inputs=" + attributes + ", " + net("body", body) + " -> " + outputs});
  };
  add(Kind::odd, "T[7], T[5,7]", "1", "delayed", "T[7], T[5,7]");
  add(Kind::odd, "T[], T[9]", "1", "delayed", "T[], T[9]");
  add(Kind::odd, "f32[3], f32[2,3] = nan inf -0 -inf 0 1", "1", "delayed", "f32[3], f32[2,3]");
  add(Kind::odd, "f32[17], f32[11,17]", "1", "summed", "f32[17], f32[11,17]");
  add(Kind::odd, "i32[3,5], i32[3,5], i32[4,3,5]", "1", "two_states", "i32[3,5], i32[3,5], i32[4,3,5], i32[4,3,5]");
  add(Kind::odd, "i32[3,4] = 1 0 2 0 0 3 0 4 5 0 0 6", "1", "nonzero", "i64[3,1,2]");
  add(Kind::empty, "T[7], T[0,7]", "1", "delayed", "T[7], T[0,7]");
  add(Kind::empty, "T[3,7], T[3,0,7]", "1, scan_input_axes=[1], scan_output_axes=[2]", "delayed", "T[3,7], T[3,7,0]");
  add(Kind::empty, "T[0], T[5,0]", "1", "delayed", "T[0], T[5,0]");
  add(Kind::broadcast, "i32[4,3,1], i32[4,5], i32[]", "2, captured=1", "zipped", "i32[4,3,5], i32[4,3,5], i32[4,5]");
  for (const std::string in : {"0", "1"})
    for (const std::string out : {"0", "1"}) {
      const std::string directions = ", scan_input_directions=[" + in + "], scan_output_directions=[" + out + "]";
      add(Kind::strided, "T[3,7], T[5,3,7]", "1" + directions, "delayed", "T[3,7], T[5,3,7]");
      add(Kind::strided, "T[3,7], T[3,5,7]", "1, scan_input_axes=[1], scan_output_axes=[2]" + directions, "delayed", "T[3,7], T[3,7,5]");
      add(Kind::strided, "f32[3,7], f32[3,7,5]", "1, scan_input_axes=[-1], scan_output_axes=[-2]" + directions, "summed",
          "f32[3,7], f32[3,5,7]");
    }
  add(Kind::strided, "i32[3,4,2], i32[4,3,2], i32[3,2]",
      "2, captured=1, scan_input_axes=[1,0], scan_input_directions=[0,1], scan_output_axes=[0,-1,1], scan_output_directions=[1,0,1]",
      "zipped", "i32[4,3,2], i32[3,2,4], i32[3,4,2]");
  add(Kind::strided, "i32[3,4] = 1 0 2 0 0 3 0 4 5 0 0 6", "1, scan_output_axes=[2], scan_output_directions=[1]", "nonzero", "i64[1,2,3]");
  add(Kind::rank, "f32[2,1,2,1,2,1,3], f32[2,1,2,3,1,2,1,3]", "1, scan_input_axes=[3], scan_output_axes=[7]", "delayed",
      "f32[2,1,2,1,2,1,3], f32[2,1,2,1,2,1,3,3]");
  add(Kind::large, "f32[257], f32[301,257]", "1", "summed", "f32[257], f32[301,257]");
  add(Kind::large, "f32[61,57], f32[61,31,57]", "1, scan_input_axes=[1], scan_output_axes=[1]", "delayed", "f32[61,57], f32[61,31,57]");
  return {.type = "Scan", .reference = scan, .cases = std::move(cases), .one_tile = true};
}

}  // namespace
}  // namespace reference_control

std::vector<Row> control_rows() {
  using namespace reference_control;
  return {if_row(), loop_row(), scan_row()};
}

}  // namespace heddle::conformance
