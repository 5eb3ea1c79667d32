// heddle::Pointwise on a GPU, and so every operator of any plugin that has a pointwise text and no kernel of its own for "cuda".
#include <string>

#include "kernels/kernel_families.h"
#include "kernels/pointwise_launch.h"

namespace heddle::cuda {
namespace {

class Pointwise : public GpuKernel {
 public:
  Status create(const CreateContext& context) {
    HEDDLE_PLUGIN_CHECK(on(context));
    const std::string text = context.attributes.s("program");
    for (uint32_t i = 0; i < context.input_count(); ++i) program_.inputs.push_back("x" + std::to_string(i));
    std::string error;
    if (!expression::parse(text, {}, program_, error)) return invalid("program \"" + text + "\": " + error);
    expression::prune(program_);
    return {};
  }

  Status prepare(PrepareContext& context) {
    HEDDLE_PLUGIN_CHECK(launch_.prepare(device(), program_, *context.output(0), context.inputs()));
    context.set_tiles(1);
    return {};
  }

  Status run(const RunContext& context, int64_t, int64_t) const {
    const void* inputs[most_inputs];
    for (size_t i = 0; i < program_.inputs.size(); ++i) inputs[i] = context.inputs[i]->data;
    return launch_.start(*this, context, context.outputs[0]->data, inputs);
  }

 private:
  static constexpr size_t most_inputs = 500;  // more addresses than a launch takes

  expression::Program program_;
  PointwiseLaunch launch_;
};

}  // namespace

void add_pointwise(Builder& plugin) {
  plugin.add(Op("Pointwise", "heddle").kernels_only().kernel<Pointwise>("cuda").kernel_name("cuda:pointwise"));
}

}  // namespace heddle::cuda
