// Runs pointwise programs on a GPU: heddle::Pointwise, and so every operator of any plugin that has a pointwise text and no kernel of its
// own for "cuda"; Cast, CastLike, Sum, Mean, Max and Min, which have no such text, by a program that is made for each call.
#include <algorithm>
#include <string>

#include "kernels/common/pointwise_launch.h"
#include "kernels/kernel_families.h"
#include "shared/fold_text.h"
#include "shared/pow_arithmetic.h"

namespace heddle::cuda {
namespace {

class ProgramKernel : public GpuKernel {
 public:
  Status prepare(PrepareContext& context) {
    HEDDLE_PLUGIN_CHECK(launch_.prepare(device(), program_, *context.output(0), context.inputs(), conversion_));
    context.set_tiles(1);
    return {};
  }

  Status run(const RunContext& context, int64_t, int64_t) const {
    const void* inputs[max_inputs];
    for (size_t i = 0; i < program_.inputs.size(); ++i) inputs[i] = context.inputs[i]->data;
    return launch_.start(*this, context, context.outputs[0]->data, inputs);
  }

 protected:
  // Creates the program of the first `inputs` inputs, called x0, x1, ...
  Status create_program(const CreateContext& context, uint32_t inputs, const std::string& text) {
    HEDDLE_PLUGIN_CHECK(on(context));
    if (inputs > max_inputs) return unsupported(std::to_string(inputs) + " inputs, whose addresses are more than a launch takes");
    program_.inputs = names(inputs);
    std::string error;
    if (!expression::parse(text, {}, program_, error)) return invalid("program \"" + text + "\": " + error);
    expression::prune(program_);
    return {};
  }
  static std::vector<std::string> names(uint32_t inputs) {
    std::vector<std::string> all;
    for (uint32_t i = 0; i < inputs; ++i) all.push_back("x" + std::to_string(i));
    return all;
  }
  PointwiseLaunch::Conversion conversion_;

 private:
  static constexpr uint32_t max_inputs = 500;

  expression::Program program_;
  PointwiseLaunch launch_;
};

class Pointwise : public ProgramKernel {
 public:
  Status create(const CreateContext& context) { return create_program(context, context.input_count(), context.attributes.s("program")); }
};

// Implements Cast and CastLike, whose second input is never read.
class Cast : public ProgramKernel {
 public:
  Status create(const CreateContext& context) {
    conversion_.converts = true;
    return create_program(context, 1, "x0");
  }
};

class Pow : public ProgramKernel {
 public:
  Status create(const CreateContext& context) {
    conversion_ = {operators::pow_arithmetic(context.input(0)->dtype, context.input(1)->dtype), true};
    // CUDA's pow errs by up to 2 units (the CUDA C++ programming guide, mathematical functions), so 9^0.5 may be just below 3, and
    // truncation to an integer would lose a whole one.
    const bool truncates = conversion_.arithmetic == HEDDLE_F64 && !(float_dtypes & HEDDLE_DTYPE_BIT(context.input(0)->dtype));
    return create_program(context, 2,
                          truncates ? "p = pow(x0, x1); r = round(p); select(le(abs(p - r), 4.5e-16 * abs(r)), r, p)" : "pow(x0, x1)");
  }
};

enum class Fold : uint8_t { sum, mean, max, min };

template <Fold fold>
class Folded : public ProgramKernel {
 public:
  Status create(const CreateContext& context) {
    const uint32_t inputs = context.input_count();
    const char* const function = fold == Fold::max ? "max" : fold == Fold::min ? "min" : "+";
    const std::string ending = fold == Fold::mean ? " / " + std::to_string(inputs) : "";
    return create_program(context, inputs, operators::fold_text(names(inputs), function, ending));
  }
};

}  // namespace

void add_pointwise(Builder& plugin) {
  plugin.add(Op("Pointwise", "heddle").kernels_only().kernel<Pointwise>("cuda").kernel_name("cuda:pointwise"));
  plugin.add(Op("Cast", "", 13).kernels_only().kernel<Cast>("cuda"));
  plugin.add(Op("CastLike", "", 15).kernels_only().kernel<Cast>("cuda"));
  plugin.add(Op("Pow", "", 15).kernels_only().kernel<Pow>("cuda").equals_pointwise());
  plugin.add(Op("Sum", "", 13).kernels_only().kernel<Folded<Fold::sum>>("cuda"));
  plugin.add(Op("Mean", "", 13).kernels_only().kernel<Folded<Fold::mean>>("cuda"));
  plugin.add(Op("Max", "", 13).kernels_only().kernel<Folded<Fold::max>>("cuda"));
  plugin.add(Op("Min", "", 13).kernels_only().kernel<Folded<Fold::min>>("cuda"));
}

}  // namespace heddle::cuda
