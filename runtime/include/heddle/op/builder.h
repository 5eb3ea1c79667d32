// Builder: turns declarations into the tables of the ABI.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "heddle/abi.h"
#include "heddle/op/declare.h"
#include "heddle/op/guard.h"
#include "heddle/op/needed_resources.h"
#include "heddle/op/shape_rules.h"

namespace heddle {
namespace plugin {

// Collects operators and turns them into the tables of the ABI, which the Builder owns until the plugin is closed. For use by one thread.
class Builder {
 public:
  Builder(const char* name, const char* version, const heddle_host* host = nullptr) : host_(host) {
    plugin_ = {};
    plugin_.struct_size = sizeof(plugin_);
    plugin_.abi_major = HEDDLE_ABI_MAJOR;
    plugin_.abi_minor = HEDDLE_ABI_MINOR;
    plugin_.abi_hash = HEDDLE_ABI_HASH;
    plugin_.name = name;
    plugin_.version = version;
  }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // Returns the host's functions, for code that has no context to get them from, such as a device backend. Valid as long as the plugin is
  // loaded.
  const heddle_host* host() const { return host_; }

  // Adds an operator. `file` says where its declaration is: the file that calls this function.
  void add(const Op& op, const char* file = __builtin_FILE()) {
    Op& o = ops_.emplace_back(op);
    check(o);
    if (!o.kernels_only_) operators_.push_back(operator_table(o, file, tables_.emplace_back()));
    for (const Op::KernelData& k : o.kernels_) kernels_.push_back(kernel_table(o, k));
  }
  // Publishes a resource: an object of class R, whose constructor takes a ResourceRequest. Kernels get the resource as a T, which is R or a
  // base class of R. `device_kind` is for device and stream scope only. The constructor may throw, or R may have `Status status() const`,
  // which reports why the object is unusable. R may have Status poll_error() and, for communicator scope, abort(const char* why) and
  // Status exchange(const void* mine, uint64_t bytes, void* all, int64_t deadline_ns); see heddle_resource.
  template <class R, class T = R>
  void resource(const char* name, int32_t scope, uint32_t interface_version, const char* device_kind = nullptr) {
    resources_.push_back(
        &own_resources_.emplace_back(detail::PublishedResource<R, T>::table(host_, name, scope, interface_version, device_kind)));
  }
  // Add the plugin's own structs, which must stay valid until shutdown.
  void add(const heddle_resource* resource) { resources_.push_back(resource); }
  void add(const heddle_device_backend* backend) { devices_.push_back(backend); }
  void add(const heddle_rewrite_rule* rule) { rules_.push_back(rule); }
  // Adds a rewrite rule: where the net `pattern` occurs, `replacement` takes its place (heddle_rewrite_rule). Both are nets in text form
  // with the same inputs and one output; the literals must live as long as the plugin.
  // Each example gives inputs with which both nets are run, in the order of the pattern's inputs: "f32[4,3], f32[3]".
  void rule(const char* name, const char* pattern, const char* replacement, std::initializer_list<const char*> examples = {}) {
    RuleTables& t = own_rules_.emplace_back();
    for (const char* text : examples) t.examples.push_back({sizeof(heddle_example), 0, text, nullptr});
    for (const heddle_example& e : t.examples) t.pointers.push_back(&e);
    t.rule = {sizeof(t.rule), 0, name, pattern, replacement, t.pointers.data(), static_cast<uint32_t>(t.pointers.size()), 0};
    rules_.push_back(&t.rule);
  }
  // Sets a function that is called once, after the host has checked the tables. If the function fails, the plugin is refused with the text
  // that the function gave to host->set_error(call, ...).
  void initialize(heddle_status (*f)(const heddle_host* host, const heddle_call* call)) { initialize_ = f; }

  // Sets a function that tells users, in one line, what the plugin works with here (heddle_plugin::describe).
  void describe(heddle_status (*f)(const heddle_host* host, const heddle_call* call)) { plugin_.describe = f; }

  // Functions that HEDDLE_PLUGIN calls; not for operator authors.
  void fail(const std::string& mistake) {
    if (mistake_.empty()) mistake_ = mistake;
  }
  const heddle_plugin* finish(heddle_status (*at_start)(const heddle_host*, const heddle_call*), void (*at_end)()) {
    for (OpTables& t : tables_)
      for (heddle_gradient_node& n : t.gradients)
        if (!n.domain) n.domain = declares(t.op.domain, n.operator_name) ? t.op.domain : "";
    plugin_.operators = operators_.data();
    plugin_.kernels = kernels_.data();
    plugin_.resources = resources_.data();
    plugin_.rules = rules_.data();
    plugin_.devices = devices_.data();
    plugin_.operator_count = static_cast<uint32_t>(operators_.size());
    plugin_.kernel_count = static_cast<uint32_t>(kernels_.size());
    plugin_.resource_count = static_cast<uint32_t>(resources_.size());
    plugin_.rule_count = static_cast<uint32_t>(rules_.size());
    plugin_.device_count = static_cast<uint32_t>(devices_.size());
    plugin_.initialize = at_start;
    plugin_.shutdown = at_end;
    return &plugin_;
  }
  heddle_status call_initialize(const heddle_host* host, const heddle_call* call) const {
    if (!mistake_.empty()) return detail::report(detail::Caller{host, call}, invalid(mistake_));
    if (!initialize_) return HEDDLE_OK;
    heddle_status status = HEDDLE_OK;
    const heddle_status guarded = detail::guard(detail::Caller{host, call}, [&]() -> Status {
      status = initialize_(host, call);
      return {};
    });
    return guarded == HEDDLE_OK ? status : guarded;
  }

 private:
  struct OpTables {
    heddle_operator op;
    std::vector<const heddle_port*> inputs, outputs;
    std::vector<const heddle_attribute_schema*> attributes;
    std::vector<heddle_gradient_node> gradients;
    std::vector<const heddle_gradient_node*> gradient_pointers;
    std::vector<const heddle_example*> examples;
    std::string shapes;
  };

  struct RuleTables {
    heddle_rewrite_rule rule;
    std::vector<heddle_example> examples;
    std::vector<const heddle_example*> pointers;
  };

  // True if output `i` is the next version of one variable, and therefore has its shape.
  static bool updates_one(const Op& o, size_t i) {
    return o.outputs_[i].updates >= 0 && (o.inputs_[static_cast<size_t>(o.outputs_[i].updates)].flags & HEDDLE_PORT_VARIADIC) == 0;
  }
  bool declares(const char* domain, const char* name) const {
    for (const heddle_operator* op : operators_)
      if (std::strcmp(op->domain, domain) == 0 && std::strcmp(op->name, name) == 0) return true;
    return false;
  }

  static std::string port_mistake(const char* kind, const std::vector<heddle_port>& ports, const std::vector<heddle_dtype_set>& sets) {
    if (ports.size() != sets.size())
      return "a kernel function takes " + std::to_string(sets.size()) + " " + kind + "s, " + std::to_string(ports.size()) + " are declared";
    for (size_t i = 0; i < ports.size(); ++i)
      if (!(ports[i].dtypes & sets[i]))
        return std::string("a kernel function takes no dtype that ") + kind + " \"" + ports[i].name + "\" allows";
    return {};
  }
  void check(const Op& o) {
    std::string mistake = o.mistake_;
    for (const ShapeRule& rule : o.rules_)
      if (mistake.empty() && rule.kind == ShapeRule::same && Op::index(o.inputs_, rule.port) < 0)
        mistake = std::string("same_as() names \"") + rule.port + "\", which is no input";
    for (size_t i = 0; i < o.rules_.size() && !o.infer_ && !o.pointwise_ && !o.kernels_only_; ++i)
      if (mistake.empty() && o.rules_[i].kind == ShapeRule::none && !o.outputs_[i].dims && !updates_one(o, i))
        mistake = std::string("nothing says the shape of output \"") + o.outputs_[i].name +
                  "\": give it dims() or a rule (same_as(), broadcast(), scalar()), or the operator an infer() function";
    for (const Op::KernelData& k : o.kernels_) {
      if (!k.checks_arity || o.kernels_only_) continue;
      if (mistake.empty()) mistake = port_mistake("input", o.inputs_, k.inputs);
      if (mistake.empty()) mistake = port_mistake("output", o.outputs_, k.outputs);
    }
    if (!mistake.empty()) fail(std::string("operator ") + o.name_ + ": " + mistake);
  }

  static bool has_one_input(const Op& o) { return o.inputs_.size() == 1 && (o.inputs_[0].flags & HEDDLE_PORT_VARIADIC) == 0; }
  // Returns the rule for the dims of the outputs in words, as far as rules and dims() say it; of a function nothing is known.
  static std::string shapes_in_words(const Op& o) {
    std::string text;
    for (size_t i = 0; i < o.outputs_.size(); ++i) {
      const heddle_port& output = o.outputs_[i];
      const ShapeRule& rule = o.rules_[i];
      std::string dims;
      if (updates_one(o, i))
        dims = std::string("the dims of ") + o.inputs_[static_cast<size_t>(output.updates)].name;
      else if (output.dims)
        dims = std::string("the dims [") + output.dims + "]";
      else if (o.infer_)
        return {};  // the function may say something else than a rule
      else if (rule.kind == ShapeRule::same)
        dims = std::string("the dims of ") + rule.port;
      else if (rule.kind == ShapeRule::rank_0)
        dims = "no dims: it is one number";
      else if (rule.kind == ShapeRule::broadcast_all || (o.pointwise_ && i == 0))
        dims = has_one_input(o) ? std::string("the dims of ") + o.inputs_[0].name : "the dims to which the inputs broadcast";
      else
        return {};
      text += (i ? "; " : "") + std::string(output.name) + " has " + dims;
    }
    return text;
  }

  static const heddle_operator* operator_table(Op& o, const char* file, OpTables& t) {
    for (heddle_port& p : o.inputs_) t.inputs.push_back(&p);
    for (heddle_port& p : o.outputs_) t.outputs.push_back(&p);
    for (size_t i = 0; i < o.attributes_.size(); ++i) {
      if (o.defaults_[i].struct_size) o.attributes_[i].default_value = &o.defaults_[i];
      if (o.subnet_ports_[i].struct_size) o.attributes_[i].ports = &o.subnet_ports_[i];
      t.attributes.push_back(&o.attributes_[i]);
    }
    for (const Op::GradientData& g : o.gradients_) {
      heddle_gradient_node& n = t.gradients.emplace_back();
      n = {};
      n.struct_size = sizeof(n);
      n.input_count = static_cast<uint32_t>(g.inputs.size());
      n.output_count = static_cast<uint32_t>(g.outputs.size());
      n.copy_attributes = 1;
      n.domain = g.domain;
      n.operator_name = g.name;
      n.inputs = g.inputs.data();
      n.outputs = g.outputs.data();
    }
    for (heddle_gradient_node& n : t.gradients) t.gradient_pointers.push_back(&n);
    for (const heddle_example& e : o.examples_) t.examples.push_back(&e);
    heddle_operator& a = t.op;
    a = {};
    a.struct_size = sizeof(a);
    a.version = o.version_;
    a.domain = o.domain_;
    a.name = o.name_;
    a.doc = o.doc_;
    a.inputs = t.inputs.data();
    a.outputs = t.outputs.data();
    a.attributes = t.attributes.data();
    a.input_count = static_cast<uint32_t>(t.inputs.size());
    a.output_count = static_cast<uint32_t>(t.outputs.size());
    a.attribute_count = static_cast<uint32_t>(t.attributes.size());
    a.traits = o.traits_;
    a.precision = o.precision_;
    a.gradient_node_count = static_cast<uint32_t>(t.gradient_pointers.size());
    a.infer = infer;
    a.subnets = o.subnets_ ? subnets : nullptr;
    a.cost = o.cost_;
    a.gradient_nodes = t.gradient_pointers.data();
    a.gradient = o.gradient_callback_;
    a.pointwise = o.pointwise_;
    a.user = &o;
    a.examples = t.examples.data();
    a.example_count = static_cast<uint32_t>(t.examples.size());
    t.shapes = o.shapes_ ? o.shapes_ : shapes_in_words(o);
    a.formula = o.formula_;
    a.shapes = t.shapes.empty() ? nullptr : t.shapes.c_str();
    a.file = file;
    return &a;
  }

  const heddle_kernel* kernel_table(const Op& o, const Op::KernelData& k) {
    heddle_kernel& n = kernel_data_.emplace_back();
    n = {};
    n.struct_size = sizeof(n);
    n.version = o.version_;
    n.domain = o.domain_;
    n.operator_name = o.name_;
    n.device_kind = k.device;
    n.name = k.name;
    n.input_dtypes = k.inputs.empty() ? nullptr : k.inputs.data();
    n.output_dtypes = k.outputs.empty() ? nullptr : k.outputs.data();
    n.input_dtype_count = static_cast<uint32_t>(k.inputs.size());
    n.output_dtype_count = static_cast<uint32_t>(k.outputs.size());
    n.flags = k.flags;
    n.priority = k.priority;
    n.create = k.create;
    n.prepare = k.prepare;
    n.run = k.run;
    n.finish = k.finish;
    n.destroy = k.destroy;
    n.formats = k.formats;
    n.accepts_epilogue = k.accepts_epilogue;
    n.abort = k.abort;
    n.run_group = k.run_group;
    return &n;
  }

  static Status apply(const ShapeRule& rule, const Op& o, uint32_t output, InferContext& context) {
    if (rule.kind == ShapeRule::same) context.set_dims(output, context.dims(static_cast<uint32_t>(Op::index(o.inputs_, rule.port))));
    if (rule.kind == ShapeRule::rank_0) context.set_dims(output, Dims());
    if (rule.kind != ShapeRule::broadcast_all) return {};
    std::vector<int64_t> dims;
    for (uint32_t k = 0; k < context.input_count(); ++k)
      if (context.has_input(k) && !broadcast_dims(dims, context.dims(k)))
        return invalid("input " + std::to_string(k) + " " + dims_text(context.dims(k)) + " does not broadcast to " +
                       dims_text({dims.data(), static_cast<int>(dims.size())}));
    context.set_dims(output, dims);
    return {};
  }
  static heddle_status infer(const heddle_infer_context* c) {
    return detail::guard(*c, [&](detail::Mistakes& mistakes) -> Status {
      const Op& o = *static_cast<const Op*>(c->op->user);
      InferContext context(c, &mistakes);
      for (uint32_t i = 0; i < c->output_count && i < o.rules_.size(); ++i) {
        ShapeRule rule = o.rules_[i];
        if (rule.kind == ShapeRule::none && !o.infer_) {
          if (o.pointwise_)
            rule.kind = ShapeRule::broadcast_all;
          else if (updates_one(o, i) && !o.outputs_[i].dims)
            rule = {ShapeRule::same, o.inputs_[static_cast<size_t>(o.outputs_[i].updates)].name};
        }
        Status status = apply(rule, o, i, context);
        if (!status.ok()) return status;
      }
      return o.infer_ ? o.infer_(context) : Status();
    });
  }

  static heddle_status subnets(const heddle_infer_context* c) {
    return detail::guard(*c, [&](detail::Mistakes& mistakes) -> Status {
      const SubnetContext context(c, &mistakes);
      return static_cast<const Op*>(c->op->user)->subnets_(context);
    });
  }

  const heddle_host* const host_;
  heddle_plugin plugin_;
  std::deque<Op> ops_;
  std::deque<OpTables> tables_;
  std::deque<heddle_kernel> kernel_data_;
  std::vector<const heddle_operator*> operators_;
  std::vector<const heddle_kernel*> kernels_;
  std::vector<const heddle_resource*> resources_;
  std::vector<const heddle_device_backend*> devices_;
  std::vector<const heddle_rewrite_rule*> rules_;
  std::deque<RuleTables> own_rules_;
  std::deque<heddle_resource> own_resources_;
  std::string mistake_;
  heddle_status (*initialize_)(const heddle_host*, const heddle_call*) = nullptr;
};

}  // namespace plugin
}  // namespace heddle
