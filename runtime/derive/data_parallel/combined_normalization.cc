#include "derive/data_parallel/combined_normalization.h"

#include <fmt/format.h>

#include "base/text/text.h"

namespace heddle {
namespace {

class CombinedNormalization {
 public:
  CombinedNormalization(Emitter& emitter, const PolymorphicTypes& types, const Node& node, const std::string& communicator)
      : emitter_(emitter),
        dtype_(types.dtype(node.inputs[0])),
        wide_(dtype_ == DType::f64 ? DType::f64 : DType::f32),
        rank_(types.abi(node.inputs[0]).rank),
        communicator_(communicator),
        node_(node) {}

  // The result has a value for each output of the node; the first one also where the node does not want it.
  Result<std::vector<ValueId>> run(const std::vector<ValueId>& inputs) {
    if (rank_ < 2)
      return Status(Code::unsupported,
                    fmt::format("operator {} normalises a value of rank {}, which has no channels", quoted(node_.name), rank_),
                    "leave its statistics as they are, or give it rows and channels");
    HEDDLE_TRY(const ValueId x, widened(inputs[0]));
    HEDDLE_TRY(const ValueId count, rows_of(inputs[0], inputs[1]));
    HEDDLE_TRY(const ValueId sum, summed(x));
    HEDDLE_TRY(const std::vector<ValueId> all, emitter_.emit("heddle", "AllReduce", {sum, count}, 2, {{"communicator", communicator_}}));
    HEDDLE_TRY(const ValueId mean, emitter_.emit1("", "Div", {all[0], all[1]}));
    HEDDLE_TRY(const ValueId centred, emitter_.emit1("", "Sub", {x, mean}));
    HEDDLE_TRY(const ValueId squares, emitter_.emit1("", "Mul", {centred, centred}));
    HEDDLE_TRY(const ValueId own, summed(squares));
    HEDDLE_TRY(const ValueId squares_of_all, emitter_.emit1("heddle", "AllReduce", {own}, {{"communicator", communicator_}}));
    HEDDLE_TRY(const ValueId variance, emitter_.emit1("", "Div", {squares_of_all, all[1]}));
    const AttributeValue* const epsilon = node_.find("epsilon");
    const double e = epsilon ? std::get<double>(*epsilon) : 1e-5;
    HEDDLE_TRY(const ValueId inverse, pointwise(fmt::format("1 / sqrt(x0 + {:.17g})", e), {variance}));
    HEDDLE_TRY(const ValueId scale, by_channel(inputs[1]));
    HEDDLE_TRY(const ValueId bias, by_channel(inputs[2]));
    HEDDLE_TRY(const ValueId wide_y, pointwise("x0 * x1 * x2 + x3", {centred, inverse, scale, bias}));
    std::vector<ValueId> outputs(node_.outputs.size());
    HEDDLE_TRY(outputs[0], wide_ == dtype_ ? Result<ValueId>(wide_y) : emitter_.emit_cast(wide_y, dtype_));
    for (size_t i = 1; i < outputs.size(); ++i)
      if (node_.outputs[i].valid()) {
        HEDDLE_TRY(outputs[i], running(inputs[i + 2], i == 1 ? mean : variance));
      }
    return outputs;
  }

 private:
  Result<ValueId> pointwise(std::string program, std::vector<ValueId> inputs) {
    return emitter_.emit1("heddle", "Pointwise", std::move(inputs), {{"program", std::move(program)}});
  }
  Result<ValueId> widened(ValueId value) { return wide_ == dtype_ ? Result<ValueId>(value) : emitter_.emit_cast(value, wide_); }

  // The number of elements of each channel, with no dims.
  Result<ValueId> rows_of(ValueId x, ValueId scale) {
    HEDDLE_TRY(const ValueId elements, emitter_.emit1("", "Size", {x}));
    HEDDLE_TRY(const ValueId channels, emitter_.emit1("", "Size", {scale}));
    HEDDLE_TRY(const ValueId rows, emitter_.emit1("", "Div", {elements, channels}));
    return emitter_.emit_cast(rows, wide_);
  }
  // The sum over all axes but 1, which stay with extent 1.
  Result<ValueId> summed(ValueId x) {
    std::vector<int64_t> axes = {0};
    for (int axis = 2; axis < rank_; ++axis) axes.push_back(axis);
    return emitter_.emit1("", "ReduceSum", {x, emitter_.constant_ints(axes)}, {{"keepdims", int64_t{1}}});
  }
  // A value [C] that broadcasts to the shape of x.
  Result<ValueId> by_channel(ValueId value) {
    HEDDLE_TRY(value, emitter_.emit_cast(value, wide_));
    std::vector<int64_t> dims(static_cast<size_t>(rank_ - 1), 1);
    dims[0] = -1;
    return emitter_.emit1("", "Reshape", {value, emitter_.constant_ints(dims)});
  }
  Result<ValueId> running(ValueId before, ValueId now) {
    const AttributeValue* const momentum = node_.find("momentum");
    const double kept = momentum ? std::get<double>(*momentum) : 0.9;
    HEDDLE_TRY(now, emitter_.emit1("", "Reshape", {now, emitter_.constant_ints({-1})}));
    HEDDLE_TRY(now, emitter_.emit1("", "CastLike", {now, before}));
    return pointwise(fmt::format("{:.17g} * x0 + {:.17g} * x1", kept, 1 - kept), {before, now});
  }

  Emitter& emitter_;
  const DType dtype_, wide_;
  const int rank_;
  const std::string& communicator_;
  const Node& node_;
};

}  // namespace

bool normalizes_batch(const Node& node) {
  return node.domain.empty() && node.type == "BatchNormalization" && node.int_attribute("training_mode", 0) != 0;
}

Result<std::vector<ValueId>> combined_normalization(Emitter& emitter, const PolymorphicTypes& types, const Node& node,
                                                    const std::vector<ValueId>& inputs, const std::string& communicator) {
  return CombinedNormalization(emitter, types, node, communicator).run(inputs);
}

}  // namespace heddle
