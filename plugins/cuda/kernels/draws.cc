// Implements RandomNormal, RandomUniform, their -Like forms, Bernoulli, Multinomial and Dropout.
#include <memory>

#include "generate/operators/random_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

enum class Distribution { normal, uniform };

template <Distribution distribution>
class Numbers : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<NumbersLaunches>();
    launches->seed = operators::Seed::from_float(context.attributes);
    launches->numbers = operators::random_numbers(context.attributes, distribution == Distribution::normal);
    return begin(context, std::move(launches));
  }
};

template <class L>
class Draw : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<L>();
    launches->seed = operators::Seed::from_float(context.attributes);
    return begin(context, std::move(launches));
  }
};

class Dropout : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<DropoutLaunches>();
    launches->seed = operators::Seed::from_integer(context.attributes);
    return begin(context, std::move(launches));
  }
};

}  // namespace

void add_draws(Builder& plugin) {
  plugin.add(Op("RandomNormal", "", 1).kernels_only().kernel<Numbers<Distribution::normal>>("cuda"));
  plugin.add(Op("RandomNormalLike", "", 1).kernels_only().kernel<Numbers<Distribution::normal>>("cuda"));
  plugin.add(Op("RandomUniform", "", 1).kernels_only().kernel<Numbers<Distribution::uniform>>("cuda"));
  plugin.add(Op("RandomUniformLike", "", 1).kernels_only().kernel<Numbers<Distribution::uniform>>("cuda"));
  plugin.add(Op("Bernoulli", "", 15).kernels_only().kernel<Draw<BernoulliLaunches>>("cuda"));
  plugin.add(Op("Multinomial", "", 7).kernels_only().kernel<Draw<MultinomialLaunches>>("cuda"));
  plugin.add(Op("Dropout", "", 13).kernels_only().kernel<Dropout>("cuda"));
}

}  // namespace heddle::cuda
