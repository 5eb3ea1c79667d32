#include "generate/operators/recurrent_launches.h"

#include <algorithm>

#include "generate/dtype_names.h"

namespace heddle::cuda {
namespace {

using operators::RecurrentActivation;

constexpr unsigned int recurrent_threads = 128, walk_threads = 512;
constexpr int64_t max_hidden = 1024;  // largest hidden size whose state one block holds
// Limits on the R of one direction, which a block reads in each step, and on what all blocks read in one step. Beyond them reading R by
// more blocks gains more than two launches cost (estimated, not measured).
constexpr int64_t max_walked_bytes = int64_t{1} << 20, max_read_bytes = int64_t{16} << 20;

// Names in the order of RecurrentActivation::Kind.
constexpr const char* activation_names[] = {"relu",        "tanh",         "sigmoid", "affine",   "leaky_relu", "thresholded_relu",
                                            "scaled_tanh", "hard_sigmoid", "elu",     "softsign", "softplus"};

}  // namespace

bool RecurrentLaunches::walks() const {
  const int64_t bytes = gates() * shape.hidden * shape.hidden * static_cast<int64_t>(plugin::byte_width(dtype_));
  return shape.hidden <= max_hidden && bytes <= max_walked_bytes && bytes * shape.directions * shape.batches <= max_read_bytes;
}

void RecurrentLaunches::place() {
  LaunchPlan plan;
  const int64_t units = shape.directions * shape.batches, width = static_cast<int64_t>(plugin::byte_width(dtype_));
  const auto take = [&](int64_t elements) { return plan.take(static_cast<uint64_t>(elements * width)); };
  scratch_.projections = take(units * shape.times * gates() * shape.hidden);
  scratch_.products = take(units * gates() * shape.hidden);
  scratch_.h = take(units * shape.hidden);
  scratch_.c = cell == RecurrentCell::lstm ? take(units * shape.hidden) : 0;
  scratch_.reset = resets_before() ? take(units * shape.hidden) : 0;
  scratch_.bytes = plan.scratch_bytes;
}

void RecurrentLaunches::parameters(ParameterWriter& writer) const {
  const char* const type = stored_type(dtype_);
  writer.number("step", int64_t{0});
  writer.number("times", shape.times);
  writer.number("batches", shape.batches);
  writer.number("hidden", shape.hidden);
  writer.number("elements", shape.directions * shape.batches * shape.hidden);
  writer.number("clip", clip);
  for (size_t i = 0; i < activations.size(); ++i) {
    writer.number(("alpha" + std::to_string(i)).c_str(), activations[i].alpha);
    writer.number(("beta" + std::to_string(i)).c_str(), activations[i].beta);
  }
  if (walks()) writer.address("const ", type, "weights", Address::input, operators::port_r);
  writer.address("const ", type, "projections", Address::scratch, 0, scratch_.projections);
  writer.address("", type, "products", Address::scratch, 0, scratch_.products);
  writer.address("", type, "h", Address::scratch, 0, scratch_.h);
  if (cell == RecurrentCell::lstm) writer.address("", type, "c", Address::scratch, 0, scratch_.c);
  if (resets_before()) writer.address("", type, "reset", Address::scratch, 0, scratch_.reset);
  const auto given = [&](uint32_t port, const char* of, const char* name) {
    if (has_[port]) writer.address("const ", of, name, Address::input, port);
  };
  given(operators::port_b, type, "bias");
  given(operators::port_lengths, "i32", "lengths");
  writer.fault();
  given(operators::port_h, type, "initial_h");
  given(operators::port_c, type, "initial_c");
  given(operators::port_p, type, "peepholes");
  if (y_) writer.address("", type, "y", Address::output, 0);
  if (y_h_) writer.address("", type, "y_h", Address::output, 1);
  if (y_c_) writer.address("", type, "y_c", Address::output, 2);
  if (sums_) writer.address("", type, "sums", Address::output, operators::sums_port(gates()));
}

// Writes function k of a direction, and of both where they differ.
void RecurrentLaunches::activation_functions(KernelText* text) const {
  const auto call = [&](size_t i) {
    const std::string number = std::to_string(i);
    return std::string("activation_") + activation_names[static_cast<size_t>(activations[i].kind)] + "<C>(x, (C)p.alpha" + number +
           ", (C)p.beta" + number + ")";
  };
  const auto same = [](const RecurrentActivation& a, const RecurrentActivation& b) {
    return a.kind == b.kind && a.alpha == b.alpha && a.beta == b.beta;
  };
  for (size_t k = 0; k < functions(); ++k) {
    const size_t other = functions() + k;
    const bool alike = shape.directions == 1 || same(activations[k], activations[other]);
    text->function("C activated" + std::to_string(k) + "(const Parameters& p, Index d, C x)",
                   "return " + (alike ? call(k) : "d == 0 ? " + call(k) + " : " + call(other)) + ";");
  }
}

void RecurrentLaunches::members(KernelText* text) const {
  const auto reads = [&](const char* name, uint32_t port, const char* member) {
    text->function(std::string("C ") + name + "(const Parameters& p, Index at)",
                   has_[port] ? std::string("return p.") + member + "[at];" : "return (C)0;");
  };
  const auto writes = [&](const char* name, bool asked, const char* member) {
    text->function(std::string("void ") + name + "(const Parameters& p, Index at, C x)",
                   asked ? std::string("p.") + member + "[at] = x;" : "");
  };
  text->type("C", compute_type(dtype_));
  text->constant("CELL", static_cast<int>(cell));
  text->constant("MOST_HIDDEN", max_hidden);
  text->constant("GATES", gates());
  text->constant("DIRECTIONS", shape.directions);
  text->constant("BATCH_FIRST", shape.batch_first);
  text->constant("PEEPHOLES", has_[operators::port_p]);
  text->constant("RESETS_BEFORE", resets_before());
  text->constant("KEEPS_SUMS", sums_);
  text->constant("KEPT_GATES", operators::kept_gates(gates()));
  text->constant("INPUT_FORGET", cell == RecurrentCell::lstm && variant);
  text->function("bool backward(Index d)", backward ? "return true;" : "return d == 1;");
  text->function("i64 length(const Parameters& p, Index b)",
                 has_[operators::port_lengths] ? "return (i64)p.lengths[b];" : "return p.times;");
  reads("bias", operators::port_b, "bias");
  reads("peephole", operators::port_p, "peepholes");
  reads("initial_h", operators::port_h, "initial_h");
  reads("initial_c", operators::port_c, "initial_c");
  writes("put_y", y_, "y");
  writes("put_h", y_h_, "y_h");
  writes("put_c", y_c_, "y_c");
  writes("put_sum", sums_, "sums");
  activation_functions(text);
}

void RecurrentLaunches::choose(const Operands& operands, KernelSource* source) {
  dtype_ = operands.input(operators::port_x)->dtype;
  for (uint32_t port = 0; port <= operators::port_p; ++port) has_[port] = operands.input(port) != nullptr;
  y_ = operands.output(0) != nullptr;
  y_h_ = operands.output(1) != nullptr;
  y_c_ = cell == RecurrentCell::lstm && operands.output(2) != nullptr;
  sums_ = operands.output(operators::sums_port(gates())) != nullptr;
  const int64_t max_gates = operators::kept_gates(gates());
  wide_ = is_wide(shape.directions * shape.batches * std::max<int64_t>(shape.times, 1) * max_gates * shape.hidden);
  place();
  KernelText text("recurrent", wide_);
  members(&text);
  parameters(text.parameters);
  if (walks()) {
    text.block_kernel("walk", "recurrent_walk<F, Parameters>", walk_threads);
  } else {
    text.kernel("begin", "recurrent_begin<F, Parameters>");
    text.kernel("step", "recurrent_step<F, Parameters>");
    if (resets_before()) text.kernel("reset", "recurrent_reset<F, Parameters>");
  }
  text.write({"block", "fault", "recurrent"}, source);
}

Launch RecurrentLaunches::launch(Kernel kernel) const {
  LaunchPlan plan;
  const int64_t units = shape.directions * shape.batches;
  Launch& launch = walks() ? plan.add(kernel, walk_threads, static_cast<unsigned int>(units))
                           : plan.add(kernel, recurrent_threads, blocks_of(units * shape.hidden, recurrent_threads));
  ParameterWriter writer(nullptr, &launch);
  parameters(writer);
  return launch;
}

}  // namespace heddle::cuda
