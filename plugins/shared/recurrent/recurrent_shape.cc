#include "shared/recurrent/recurrent_shape.h"

#include <string>

namespace heddle::operators {
namespace {

Status direction_count(const Attributes& attributes, int* directions) {
  const std::string text = attributes.s("direction");
  if (text != "forward" && text != "reverse" && text != "bidirectional")
    return invalid("direction is \"" + text + "\", expected forward, reverse or bidirectional");
  *directions = text == "bidirectional" ? 2 : 1;
  return {};
}

}  // namespace

void set_sequences(Dims x, RecurrentShape* shape) {
  shape->times = x[shape->batch_first ? 1 : 0];
  shape->batches = x[shape->batch_first ? 0 : 1];
}

Status read_recurrent_shape(const Attributes& attributes, Dims x, Dims w, int gates, RecurrentShape* shape) {
  HEDDLE_PLUGIN_CHECK(direction_count(attributes, &shape->directions));
  shape->batch_first = attributes.i("layout") != 0;
  if (x.rank != 3) return invalid("X has shape " + dims_text(x) + ", expected three dimensions");
  set_sequences(x, shape);
  shape->inputs = x[2];
  if (w.rank != 3 || w[0] != shape->directions || w[1] % gates || w[2] != shape->inputs)
    return invalid("W has shape " + dims_text(w) + ", expected [" + std::to_string(shape->directions) + ", " + std::to_string(gates) +
                   " * hidden_size, " + std::to_string(shape->inputs) + "]");
  shape->hidden = w[1] / gates;
  const int64_t declared = attributes.i("hidden_size", shape->hidden);
  if (declared != shape->hidden)
    return invalid("hidden_size is " + std::to_string(declared) + ", W is made for " + std::to_string(shape->hidden));
  return {};
}

Status read_gates_shape(const Attributes& attributes, Dims sums, Dims r, int gates, RecurrentShape* shape) {
  HEDDLE_PLUGIN_CHECK(direction_count(attributes, &shape->directions));
  shape->batch_first = attributes.i("layout") != 0;
  if (sums.rank != 3 || r.rank != 3 || r[0] != shape->directions || r[1] != gates * r[2] ||
      sums[2] != shape->directions * kept_gates(gates) * r[2])
    return invalid("sums has shape " + dims_text(sums) + " and R " + dims_text(r) + ", expected " + std::to_string(gates) +
                   " gates of R's last extent in R and " + std::to_string(kept_gates(gates)) + " in sums, in " +
                   (shape->directions == 2 ? "both directions" : "one direction"));
  set_sequences(sums, shape);
  shape->hidden = r[2];
  return {};
}

}  // namespace heddle::operators
