// Names and default parameters of the recurrent operators' activation functions (ONNX operator specification, RNN-14).
#include "shared/recurrent/recurrent_activation.h"

#include <cctype>

namespace heddle::operators {
namespace {

struct Known {
  const char* name;  // in lower case: the specification compares without case
  int parameters;    // alpha, then beta
  double alpha, beta;
};
// In the order of RecurrentActivation::Kind.
constexpr Known known[] = {
    {"relu", 0, 0, 0},         {"tanh", 0, 0, 0},
    {"sigmoid", 0, 0, 0},      {"affine", 2, 1, 0},
    {"leakyrelu", 1, 0.01, 0}, {"thresholdedrelu", 1, 1, 0},
    {"scaledtanh", 2, 1, 1},   {"hardsigmoid", 2, 0.2, 0.5},
    {"elu", 1, 1, 0},          {"softsign", 0, 0, 0},
    {"softplus", 0, 0, 0},
};

}  // namespace

Status parse_activations(const Attributes& attributes, int directions, const std::vector<RecurrentActivation::Kind>& defaults,
                         std::vector<RecurrentActivation>* activations) {
  activations->clear();
  const size_t count = static_cast<size_t>(directions) * defaults.size();
  const heddle_attribute* names = attributes.find("activations");
  const std::vector<double> alphas = attributes.floats("activation_alpha"), betas = attributes.floats("activation_beta");
  if (names && names->count != count)
    return invalid("activations has " + std::to_string(names->count) + " entries, expected " + std::to_string(count));
  size_t next_alpha = 0, next_beta = 0;
  for (size_t i = 0; i < count; ++i) {
    size_t kind = static_cast<size_t>(defaults[i % defaults.size()]);
    if (names) {
      std::string name = names->strings[i];
      for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      for (kind = 0; kind < std::size(known) && name != known[kind].name;) ++kind;
      if (kind == std::size(known)) return invalid("activations names an unknown function: \"" + name + "\"");
    }
    RecurrentActivation activation{static_cast<RecurrentActivation::Kind>(kind), known[kind].alpha, known[kind].beta};
    if (known[kind].parameters >= 1 && next_alpha < alphas.size()) activation.alpha = alphas[next_alpha++];
    if (known[kind].parameters >= 2 && next_beta < betas.size()) activation.beta = betas[next_beta++];
    activations->push_back(activation);
  }
  return {};
}

}  // namespace heddle::operators
