// What docs/operator_guide.md shows of subnets: a body run for each row of an input.
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

// What the body is given: the number of the row, the row, whose content differs from run to run, and the captures as they are.
struct BodyInputs {
  explicit BodyInputs(const InferContext& c) : number(view_of<int64_t>(nullptr)), row(without_data(row_of(c.input(0), 0))) {
    views = {&number, &row};
    views.insert(views.end(), c.inputs() + 1, c.inputs() + c.input_count());
  }
  heddle_tensor number, row;
  std::vector<const heddle_tensor*> views;
};

Status map_subnets(const SubnetContext& c) {
  if (c.dims(0).rank < 1) return invalid("x has no rows");
  return c.declare("body", BodyInputs(c).views);
}

Status infer_map(InferContext& c) {
  if (c.dims(0).rank < 1) return invalid("x has no rows");
  std::vector<heddle_type> rows;
  HEDDLE_PLUGIN_CHECK(Subnet(c.attributes, "body").infer(c, BodyInputs(c).views, 1, &rows));
  if ((rows[0].flags & HEDDLE_TYPE_DYNAMIC) || rows[0].bounded_axis >= 0 || rows[0].rank == HEDDLE_MAX_RANK)
    return invalid("the body's output is of no fixed shape that could be stacked");
  std::vector<int64_t> dims(rows[0].dims, rows[0].dims + rows[0].rank);
  dims.insert(dims.begin(), c.dims(0)[0]);
  c.set_dtype(0, rows[0].dtype);
  c.set_dims(0, dims);
  return {};
}

class Map {
 public:
  Status create(const CreateContext& c) {
    body_ = Subnet(c.attributes, "body");
    return {};
  }
  Status prepare(PrepareContext& c) {
    c.set_scratch((c.input_count() + 1) * sizeof(heddle_tensor*));
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    for (int64_t i = 0; i < c.inputs[0]->dims[0]; ++i) {
      const heddle_tensor number = view_of(&i), x = row_of(*c.inputs[0], i);
      heddle_tensor y = row_of(*c.outputs[0], i);
      const auto inputs = InputViews::joined(step_scratch<const heddle_tensor*>(c), {&number, &x}, inputs_from(c, 1));
      HEDDLE_PLUGIN_CHECK(body_.run(c, i, inputs, {&y}));
    }
    return {};
  }

 private:
  Subnet body_;
};

}  // namespace

HEDDLE_PLUGIN("guide_subnets", "1.0", plugin) {
  plugin.add(Op("Map", "guide")
                 .doc("the rows that body makes of each row of x; it is given the row's number, the row, and the captures")
                 .in("x", any_dtype, nullptr)
                 .any_number("captures")
                 .out("y", {}, any_dtype, nullptr)
                 .subnet("body", SubnetPorts().own_inputs(1))
                 .subnets(map_subnets)
                 .infer(infer_map)
                 .cpu<Map>()
                 .example(R"(i64[3,2] = 1 2 3 4 5 6, i64[] = 100;
    body={"inputs": ["i", "row", "more"], "outputs": ["y"], "nodes": [
      {"type": "Mul", "inputs": ["i", "row"], "outputs": ["t"]}, {"type": "Add", "inputs": ["t", "more"], "outputs": ["y"]}]}
    -> i64[3,2] = 100 100 103 104 110 112)",
                          "by hand")
                 .example(R"(i32[2,2] = 1 2 3 4, i32[] = 5;
    body={"inputs": ["i", "row", "unused"], "outputs": ["y"], "nodes": [{"type": "Identity", "inputs": ["row"], "outputs": ["y"]}]}
    -> i32[2,2] = 1 2 3 4)",
                          "by hand"));
}
