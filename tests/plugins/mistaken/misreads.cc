// Operators that read what is not there, each in one place. Built with exceptions and without (-fno-exceptions -fno-rtti): the mistake is
// the node's error either way, and what is read in its place does no harm.
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

Status copied(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i];
  return {};
}
class Copies {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const { return copied(input<float>(c, 0), output<float>(c, 0)); }
};

// Reads and writes f32, whatever its ports are.
class ReadsFloats {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const In<float> x = input<float>(c, 0);
    return copied(x, output<float>(c, 0));
  }
};
class StartsFloats {
 public:
  Status start(const RunContext& c, Completion done) const {
    const In<float> x = input<float>(c, 0);
    const Status status = copied(x, output<float>(c, 0));
    if (status.ok()) done(status);
    return status;
  }
};
class WritesFloats {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const In<uint16_t> bits = input<uint16_t>(c, 0);  // an element's bits are read as unsigned integers of its width
    return bits.size == c.inputs[0]->element_count ? copied({}, output<float>(c, 0)) : Status();
  }
};

// Reads undeclared attributes in create: a number, then the first extent of a tensor.
class Undeclared : public Copies {
 public:
  Status create(const CreateContext& c) {
    const int64_t number = c.attributes.i("nowhere", 1);
    const heddle_tensor* const table = c.attributes.tensor("neither");
    return number + table->dims[0] > 7 ? invalid("it is large") : Status();
  }
};
// The state of a function: it reads a float as a string.
struct Text {
  explicit Text(const Attributes& attributes) : value(attributes.s("factor")) {}
  std::string value;
};
Status with_text(In<float> x, const Text&, Out<float> y) {
  return copied(x, y);
}
// A state that refuses its attribute, without an exception.
struct Positive {
  explicit Positive(const Attributes& attributes) : value(attributes.f("factor")) {}
  Status status() const { return value > 0 ? Status() : invalid("factor is " + std::to_string(value) + ", expected a positive number"); }
  double value;
};
Status with_positive(In<float> x, const Positive&, Out<float> y) {
  return copied(x, y);
}

Status infer_absent(InferContext& c) {
  c.set_dims(0, {c.dims(1)[0], c.dims(1)[-1], c.input(1).element_count});
  return {};
}
// Reads a permutation that is given as floats.
Status infer_floats(InferContext& c) {
  const std::vector<int64_t> order = c.ints(1);
  c.set_dims(0, {order[0], order[static_cast<size_t>(c.dims(0).rank) - 1]});
  return {};
}
void absent_cost(CostContext& c) {
  c.set_flops(c.elements(1) + static_cast<double>(c.dims(1)[-1]) + c.output_elements(3));
}
class Preference : public Copies {
 public:
  static std::vector<heddle_format> formats(const CreateContext& c) {
    return std::vector<heddle_format>(c.attributes.ints("nowhere").size() + 1);
  }
  static bool accepts_epilogue(const CreateContext& c) { return !c.attributes.has("nowhere"); }
};

}  // namespace

HEDDLE_PLUGIN(MISREADS_NAME, "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "misreads").in("x", f32).out("y", same_as("x"), f32).attribute("factor", 1.0); };
  plugin.add(op("Undeclared").cpu<Undeclared>());
  plugin.add(op("OtherType").cpu<with_text>());
  plugin.add(op("Refuses").cpu<with_positive>());
  plugin.add(Op("Absent", "misreads").in("x", f32).optional("shape", f32).out("y", {}, f32).infer(infer_absent).cpu<Copies>());
  plugin.add(Op("Floats", "misreads").in("x", f32).in("order", f32).out("y", {}, f32).infer(infer_floats).cpu<Copies>());
  const auto open = [](const char* name) { return Op(name, "misreads").in("x", float_dtypes).out("y", same_as("x"), float_dtypes); };
  plugin.add(open("ReadsFloats").cpu<ReadsFloats>());
  plugin.add(open("WritesFloats").cpu<WritesFloats>());
  plugin.add(open("StartsFloats").cpu<StartsFloats>());
  plugin.add(op("Cost").cost<absent_cost>().cpu<copied>());
  plugin.add(op("Preference").cpu<Preference>());
}
