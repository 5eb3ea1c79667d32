// Op: declares one operator.
#pragma once

#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/abi.h"
#include "heddle/op/attributes.h"
#include "heddle/op/contexts.h"
#include "heddle/op/dtypes.h"
#include "heddle/op/gradient.h"
#include "heddle/op/guard.h"
#include "heddle/op/kernel_data.h"
#include "heddle/op/shape_rules.h"

namespace heddle {
namespace plugin {

class Builder;

// Maps the ports of a subnet to those of its operator: the subnet's first ports are those that the operator itself fills (inputs) or reads
// (outputs). The ports after these are ports of the operator, in order; inputs_from() and outputs_from() give the index of the first one.
struct SubnetPorts {
  heddle_subnet_ports abi = {sizeof(heddle_subnet_ports), 0, 0, 0, 0, 0};
  SubnetPorts& own_inputs(uint32_t count) { return set(abi.own_inputs, count); }
  SubnetPorts& inputs_from(uint32_t first) { return set(abi.first_input, first); }
  SubnetPorts& own_outputs(uint32_t count) { return set(abi.own_outputs, count); }
  SubnetPorts& outputs_from(uint32_t first) { return set(abi.first_output, first); }

 private:
  SubnetPorts& set(uint32_t& field, uint32_t value) {
    field = value;
    return *this;
  }
};

// One operator: schema, rules and kernels. An Op is a value, whose member functions return the Op itself so that calls can be chained; the
// builder of HEDDLE_PLUGIN turns it into the tables of the ABI. All `const char*` arguments must be literals or outlive the plugin. The
// functions do not report a contradictory declaration (an unknown port, a kernel of another arity): loading the plugin fails with a message
// that names the operator and the mistake.
class Op {
 public:
  // `domain`: "" is ONNX's; use your plugin's name for your own operators. `version`: for an ONNX operator its since-version; for your own
  // operators a version number that you choose.
  explicit Op(const char* name, const char* domain = "", int32_t version = 1) : name_(name), domain_(domain), version_(version) {}
  // Says what the operator does, in sentences. `heddle op` shows this text and the two that follow.
  Op& doc(const char* text) { return set(doc_, text); }
  // Says how outputs follow from inputs, where pointwise() does not: "Y = alpha A' B' + beta C".
  Op& formula(const char* text) { return set(formula_, text); }
  // Says how the dims of outputs follow, in words, where an infer() function finds them.
  Op& shapes(const char* text) { return set(shapes_, text); }
  // Adds an example: a call and its result, "f32[2,3] = 1 2 3 4 5 6, i64[1] = 2; axis=1 -> f32[2,1] = 3 6" (docs/writing_an_operator.md,
  // "Examples"). `source` says how the expected outputs were obtained: "by hand", "NumPy", ... Examples are documentation, and `heddle
  // plugin check` runs them.
  Op& example(const char* text, const char* source = nullptr) {
    examples_.push_back({sizeof(heddle_example), 0, text, source});
    return *this;
  }
  // Adds an example for every dtype of `set`; the name of the dtype replaces each "$" in `text`: "$[2] = 1 2 -> $[2] = -1 -2".
  Op& example_of_each(heddle_dtype_set set, const char* text, const char* source = nullptr) {
    for (int32_t d = 0; d < HEDDLE_DTYPE_COUNT; ++d) {
      if ((set & HEDDLE_DTYPE_BIT(d)) == 0) continue;
      std::string made;
      for (const char* c = text; *c; ++c)
        if (*c == '$')
          made += dtype_name(static_cast<heddle_dtype>(d));
        else
          made += *c;
      texts_.push_back(std::make_shared<const std::string>(std::move(made)));
      example(texts_.back()->c_str(), source);
    }
    return *this;
  }
  // Declare input ports, in order. Ports with the same type variable, which is "T" by default, have the same dtype.
  Op& in(const char* name, heddle_dtype_set set = any_dtype, const char* variable = "T") { return port(inputs_, name, set, variable, 0); }
  Op& optional(const char* name, heddle_dtype_set set = any_dtype, const char* variable = "T") {
    return port(inputs_, name, set, variable, HEDDLE_PORT_OPTIONAL);
  }
  Op& variadic(const char* name, heddle_dtype_set set = any_dtype, const char* variable = "T") {
    return port(inputs_, name, set, variable, HEDDLE_PORT_VARIADIC);
  }
  // Declares an input port of any number of values (also none), each with its own dtype.
  Op& any_number(const char* name) {
    return port(inputs_, name, any_dtype, nullptr, HEDDLE_PORT_VARIADIC | HEDDLE_PORT_OPTIONAL | HEDDLE_PORT_HETEROGENEOUS);
  }
  // Declares a small host tensor whose content determines output shapes.
  Op& shape_operand(const char* name, heddle_dtype_set set = dtypes<int64_t>(), bool is_optional = false) {
    uint32_t flags = HEDDLE_PORT_SHAPE_OPERAND | HEDDLE_PORT_HOST;
    if (is_optional) flags |= HEDDLE_PORT_OPTIONAL;
    return port(inputs_, name, set, nullptr, flags);
  }
  // Declares an output port. If `variable` is null and `set` has one dtype only, the output has that dtype.
  Op& out(const char* name, ShapeRule rule = {}, heddle_dtype_set set = any_dtype, const char* variable = "T") {
    rules_.push_back(rule);
    port(outputs_, name, set, variable, 0);
    for (heddle_dtype d = 1; d < HEDDLE_DTYPE_COUNT && !variable; ++d)
      if (set == HEDDLE_DTYPE_BIT(d)) outputs_.back().default_dtype = d;
    return *this;
  }
  // Declares an output with the given dtype.
  Op& out_as(const char* name, heddle_dtype dtype, ShapeRule rule = {}) { return out(name, rule, HEDDLE_DTYPE_BIT(dtype), nullptr); }
  Op& optional_out(const char* name, ShapeRule rule = {}, heddle_dtype_set set = any_dtype, const char* variable = "T") {
    out(name, rule, set, variable);
    outputs_.back().flags |= HEDDLE_PORT_OPTIONAL;
    return *this;
  }
  Op& variadic_out(const char* name, heddle_dtype_set set = any_dtype, const char* variable = "T") {
    rules_.push_back({});
    uint32_t flags = HEDDLE_PORT_VARIADIC;
    if (!variable) flags |= HEDDLE_PORT_HETEROGENEOUS;
    return port(outputs_, name, set, variable, flags);
  }
  // Declares that the last input is in host memory, whatever the node's device.
  Op& on_host() {
    if (!follows_input("on_host")) return *this;
    return add(inputs_.back().flags, HEDDLE_PORT_HOST);
  }
  // Declares the dims of the last port (heddle_port::dims): "... M K". Inputs are checked against these dims before infer() is called; an
  // output with dims() needs no other shape rule.
  Op& dims(const char* text) {
    if (!last_ports_) return mistake("dims() stands before any port");
    (this->*last_ports_).back().dims = text;
    return *this;
  }
  // Declares that the last port has no gradient although it holds real numbers. If the port is an input, its gradient is not computed;
  // examples of such inputs are a threshold and a mask. An output passes no gradient back, as if the operator heddle::StopGradient followed
  // it, and the gradient function finds its dy absent. Declare this also for an output that exists only for the gradient function, such as
  // a saved softmax.
  Op& not_differentiable() {
    if (!last_ports_) return mistake("not_differentiable() stands before any port");
    return add((this->*last_ports_).back().flags, HEDDLE_PORT_NOT_DIFFERENTIABLE);
  }
  // Declares that the last input holds indices into input `of_port`, along `axis` (-1: along the axis that the attribute "axis" gives).
  Op& indexes(const char* of_port, int axis) {
    if (!follows_input("indexes")) return *this;
    inputs_.back().index_bound_port = known(inputs_, of_port, "indexes");
    inputs_.back().index_bound_axis = axis;
    return *this;
  }
  Op& in_place(const char* output, const char* input) {
    const int32_t o = known(outputs_, output, "in_place"), i = known(inputs_, input, "in_place");
    if (o >= 0) outputs_[static_cast<size_t>(o)].may_alias = i;
    return *this;
  }
  // Declares that the last output may be the next version (the updated value) of a variable that is one of the inputs. The kernel must pass
  // that input, and the view of the output, to a subnet (HEDDLE_PORT_MAY_UPDATE).
  Op& may_update() {
    if (outputs_.empty()) return mistake("may_update() stands before any output");
    return add(outputs_.back().flags, HEDDLE_PORT_MAY_UPDATE);
  }
  // Declares that output `output` is the next version of the variable that input `input` takes; the two share their bytes. If the output is
  // not declared yet, this function declares it, with the dtypes and shape of the variable. An optional or variadic output must be declared
  // before.
  Op& updates(const char* output, const char* input) {
    const int32_t i = known(inputs_, input, "updates");
    if (i < 0) return *this;
    const heddle_port& variable = inputs_[static_cast<size_t>(i)];
    int32_t o = index(outputs_, output);
    if (o < 0 && (variable.flags & HEDDLE_PORT_VARIADIC))
      return mistake(std::string("updates() names \"") + output +
                     "\", which is not declared before it: declare it with variadic_out(), as \"" + input + "\" is variadic");
    if (o < 0) {
      out(output, {}, variable.dtypes, variable.type_variable);
      o = index(outputs_, output);
    }
    outputs_[static_cast<size_t>(o)].updates = outputs_[static_cast<size_t>(o)].may_alias = i;
    return *this;
  }
  // Declare attributes with a default value. required() and maybe() declare attributes without a default value.
  Op& attribute(const char* name, int64_t v) { return set(with_default(name, HEDDLE_ATTRIBUTE_INT).i, v); }
  Op& attribute(const char* name, int v) { return attribute(name, static_cast<int64_t>(v)); }
  Op& attribute(const char* name, double v) { return set(with_default(name, HEDDLE_ATTRIBUTE_FLOAT).f, v); }
  Op& attribute(const char* name, const char* v) {
    heddle_attribute& a = with_default(name, HEDDLE_ATTRIBUTE_STRING);
    a.s = v;
    a.count = std::strlen(v);
    return *this;
  }
  // Declares a subnet attribute, which every node must have. The rule given to subnets() declares the inputs with which the subnet is run.
  Op& subnet(const char* name, const SubnetPorts& ports) {
    declare(name, HEDDLE_ATTRIBUTE_SUBNET, 1);
    subnet_ports_.back() = ports.abi;
    return *this;
  }
  // Sets the rule that declares how the subnets of a node are run: the rule calls SubnetContext::declare for each subnet that a run may
  // need, once for each set of inputs.
  Op& subnets(Status (*rule)(const SubnetContext&)) { return set(subnets_, rule); }
  Op& required(const char* name, heddle_attribute_type type) { return declare(name, type, 1); }
  Op& maybe(const char* name, heddle_attribute_type type) { return declare(name, type, 0); }
  Op& traits(uint32_t bits) { return add(traits_, bits); }
  Op& precision(heddle_precision_class c) { return set(precision_, c); }
  // Sets a function as the shape rule; dtypes follow from the type variables unless the function sets them.
  Op& infer(Status (*rule)(InferContext&)) { return set(infer_, rule); }
  // Defines output 0 as an expression over inputs and float attributes: "max(x, 0)". The expression serves as the kernel, makes the
  // operator fusible and, unless there are other shape rules, gives output 0 the broadcast shape of the inputs. A kernel that is added must
  // be declared equals_pointwise().
  Op& pointwise(const char* expression) { return set(pointwise_, expression); }
  // Adds one operator to the gradient; each further call adds another one. Names of values are port names, "d" + port name for gradients,
  // and t0, t1, ... for intermediate values. If `domain` is null, `op_name` is an operator that this plugin declares in the domain of this
  // operator, or else an operator of ONNX's.
  Op& gradient(const char* op_name, std::initializer_list<const char*> inputs, std::initializer_list<const char*> outputs,
               const char* domain = nullptr) {
    gradients_.push_back({op_name, domain, inputs, outputs});
    return *this;
  }
  Op& gradient(heddle_gradient_function callback) { return set(gradient_callback_, callback); }
  // Sets a function that builds the gradient, for gradients that depend on attributes or types (heddle/op/gradient.h).
  template <Status (*F)(GradientContext&)>
  Op& gradient() {
    return set(gradient_callback_, detail::call_gradient<F>);
  }
  // Sets the function that computes the cost of one run from shapes. `heddle plan` and `heddle bench` show the cost, and the scheduler uses
  // it as a first estimate for kernels that declare no cost. The cost of a pointwise operator follows from the expression.
  template <void (*F)(CostContext&)>
  Op& cost() {
    cost_ = [](const heddle_infer_context* c, heddle_cost* cost) {
      return detail::guard(*c, [&](detail::Mistakes& mistakes) -> Status {
        CostContext context(c, cost, &mistakes);
        F(context);
        return {};
      });
    };
    return *this;
  }
  // Like cost() above, with the ABI's own signature: the function must not throw.
  Op& cost(heddle_cost_function f) { return set(cost_, f); }
  // Adds a kernel from a plain function. Its parameters are In, OptionalIn, Ins, Out, Outs in port order, and optionally `const
  // RunContext&` and one type constructible from `const Attributes&`. If the attributes are unsuitable, the constructor of that type
  // throws, or the type reports this by a function `Status status() const`, which is called once.
  template <auto F>
  Op& kernel(const char* device) {
    kernels_.push_back(detail::function_kernel<F>(device));
    return *this;
  }
  template <auto F>
  Op& cpu() {
    return kernel<F>("cpu");
  }
  // Declares that the last kernel computes each element independently and accepts any slice: the host splits its work into tiles.
  Op& elementwise() {
    if (kernels_.empty() || !kernels_.back().run_elementwise) return mistake("elementwise() does not follow a kernel function");
    kernels_.back().run = kernels_.back().run_elementwise;
    kernels_.back().prepare = kernels_.back().prepare_elementwise;
    return *this;
  }
  // Adds a kernel class with any of create(const CreateContext&), prepare(PrepareContext&), run(const RunContext&, begin, end) const,
  // finish(const RunContext&) const, static formats(const CreateContext&), static accepts_epilogue(const CreateContext&).
  // Instead of run, an asynchronous kernel has start(const RunContext&, Completion) const, which starts the step and returns. It may have
  // abort(const RunContext&) const, which makes a started step complete soon.
  // The sets restrict the dtypes of ports by position; ports without a set allow what the schema allows.
  template <class K>
  Op& kernel(const char* device, std::vector<heddle_dtype_set> input_sets = {}, std::vector<heddle_dtype_set> output_sets = {}) {
    kernels_.push_back(detail::class_kernel<K>(device, std::move(input_sets), std::move(output_sets)));
    return *this;
  }
  template <class K>
  Op& cpu(std::vector<heddle_dtype_set> input_sets = {}, std::vector<heddle_dtype_set> output_sets = {}) {
    return kernel<K>("cpu", std::move(input_sets), std::move(output_sets));
  }
  // Adds a kernel from functions with the ABI's own signatures: create, prepare, run, finish, destroy, formats, accepts_epilogue and abort
  // are taken from `functions`. The host calls them directly: they must not throw.
  Op& raw_kernel(const char* device, const heddle_kernel& functions) {
    kernels_.push_back(detail::raw_kernel(device, functions));
    return *this;
  }
  // Set flags, name and priority of the last kernel.
  Op& kernel_flags(uint32_t flags) { return add(last_kernel("kernel_flags").flags, flags); }
  // Declares that the last kernel gives the same bits as the operator's pointwise text for every input; `heddle plugin check` tests it.
  Op& equals_pointwise() { return add(last_kernel("equals_pointwise").flags, HEDDLE_KERNEL_EQUALS_POINTWISE); }
  Op& kernel_name(const char* name) { return set(last_kernel("kernel_name").name, name); }
  Op& priority(int32_t p) { return set(last_kernel("priority").priority, p); }
  // States that another plugin declares this operator, and that this plugin only adds kernels for the operator.
  Op& kernels_only() { return set(kernels_only_, true); }

 private:
  friend class Builder;
  using KernelData = detail::KernelData;
  struct GradientData {
    const char* name;
    const char* domain;
    std::vector<const char*> inputs, outputs;
  };
  Op& port(std::vector<heddle_port>& ports, const char* name, heddle_dtype_set set, const char* variable, uint32_t flags) {
    last_ports_ = &ports == &inputs_ ? &Op::inputs_ : &Op::outputs_;
    heddle_port p = {};
    p.struct_size = sizeof(p);
    p.flags = flags;
    p.name = name;
    p.type_variable = variable;
    p.dtypes = set;
    p.updates = p.may_alias = p.index_bound_port = p.index_bound_axis = -1;
    ports.push_back(p);
    return *this;
  }
  template <class T>
  Op& set(T& field, T value) {
    field = value;
    return *this;
  }
  Op& add(uint32_t& field, uint32_t bits) {
    field |= bits;
    return *this;
  }
  Op& mistake(std::string text) {
    if (mistake_.empty()) mistake_ = std::move(text);
    return *this;
  }
  KernelData& last_kernel(const char* asked) {
    if (!kernels_.empty()) return kernels_.back();
    mistake(std::string(asked) + "() stands before any kernel");
    return no_kernel_;
  }
  // Returns true if the last declared port is an input. Otherwise notes a mistake: a function that applies to the last declared input was
  // called before any input was declared, or directly after an output, to which it does not apply.
  bool follows_input(const char* asked) {
    if (inputs_.empty())
      mistake(std::string(asked) + "() stands before any input");
    else if (last_ports_ == &Op::outputs_)
      mistake(std::string(asked) + "() stands after output \"" + outputs_.back().name +
              "\", and is said of inputs: put it after its input");
    return last_ports_ == &Op::inputs_;
  }
  int32_t known(const std::vector<heddle_port>& ports, const char* name, const char* asked) {
    const int32_t i = index(ports, name);
    if (i < 0) mistake(std::string(asked) + "() names \"" + name + "\", which is not declared before it");
    return i;
  }
  static int32_t index(const std::vector<heddle_port>& ports, const char* name) {
    for (size_t i = 0; i < ports.size(); ++i)
      if (std::strcmp(ports[i].name, name) == 0) return static_cast<int32_t>(i);
    return -1;
  }
  Op& declare(const char* name, heddle_attribute_type type, uint32_t is_required) {
    heddle_attribute_schema s = {};
    s.struct_size = sizeof(s);
    s.type = type;
    s.required = is_required;
    s.name = name;
    attributes_.push_back(s);
    defaults_.emplace_back();
    subnet_ports_.emplace_back();
    return *this;
  }
  heddle_attribute& with_default(const char* name, heddle_attribute_type type) {
    declare(name, type, 0);
    heddle_attribute& a = defaults_.back();
    a = {};
    a.struct_size = sizeof(a);
    a.type = type;
    a.name = name;
    return a;
  }

  const char* name_;
  const char* domain_;
  int32_t version_;
  const char* doc_ = "";
  const char* formula_ = nullptr;
  const char* shapes_ = nullptr;
  std::vector<heddle_port> inputs_, outputs_;
  std::vector<heddle_port> Op::*last_ports_ = nullptr;  // inputs_ or outputs_, whichever has the last declared port
  std::vector<ShapeRule> rules_;
  std::vector<heddle_attribute_schema> attributes_;
  std::vector<heddle_attribute> defaults_;         // parallel to attributes_; struct_size 0: none
  std::vector<heddle_subnet_ports> subnet_ports_;  // parallel to attributes_
  uint32_t traits_ = 0;
  heddle_precision_class precision_ = HEDDLE_PRECISION_ANY;
  Status (*infer_)(InferContext&) = nullptr;
  Status (*subnets_)(const SubnetContext&) = nullptr;
  const char* pointwise_ = nullptr;
  std::vector<GradientData> gradients_;  // a null domain is determined when all operators of the plugin are known
  heddle_gradient_function gradient_callback_ = nullptr;
  heddle_cost_function cost_ = nullptr;
  std::vector<heddle_example> examples_;
  std::vector<std::shared_ptr<const std::string>> texts_;  // texts of examples; copies of an Op share them
  std::vector<KernelData> kernels_;
  KernelData no_kernel_;  // receives declarations about a kernel that does not exist
  std::string mistake_;   // the first mistake; reported when the plugin is loaded
  bool kernels_only_ = false;
};

}  // namespace plugin
}  // namespace heddle
