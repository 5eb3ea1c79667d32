#include "generate/move/move_source.h"

namespace heddle::cuda {

const char* unit_type(int64_t bytes) {
  switch (bytes) {
    case 1:
      return "u8";
    case 2:
      return "u16";
    case 4:
      return "u32";
    case 8:
      return "u64";
    default:
      return "Bits16";
  }
}

// n / d is (n * factor / 2^32 + n) >> shift for all n below 2^31 (Granlund and Montgomery, 1994).
int64_t divider_of(int64_t divisor, bool wide) {
  divisor = std::max<int64_t>(divisor, 1);
  if (wide) return divisor;
  int shift = 0;
  while ((int64_t{1} << shift) < divisor) ++shift;
  const auto d = static_cast<uint64_t>(divisor);
  const uint64_t factor = (((uint64_t{1} << shift) - d) << 32) / d + 1;
  return static_cast<int64_t>(static_cast<uint64_t>(shift) << 32 | (factor & 0xffffffffu));
}

void write_walk(ParameterWriter& writer, const int64_t* extents, int rank, bool wide) {
  int64_t dividers[2 * HEDDLE_MAX_RANK];
  for (int d = 0; d < rank; ++d) dividers[d] = divider_of(extents[d], wide);
  writer.numbers("extents", extents, rank);
  writer.numbers("dividers", dividers, rank);
}

namespace {

void copy_parameters(uint32_t input, int64_t bytes, ParameterWriter& writer) {
  writer.address("", "u8", "y", Address::output, 0);
  writer.address("const ", "u8", "x", Address::input, input);
  writer.number("bytes", bytes);
}

}  // namespace

void write_bytes_copy(KernelSource* source, bool wide) {
  KernelText text("data", wide);
  copy_parameters(0, 0, text.parameters);
  text.kernel("copy", "copy_bytes<Index>");
  text.write({"move"}, source);
}

void plan_bytes_copy(const Operands& operands, uint32_t kernel, LaunchPlan* plan, uint32_t input) {
  const auto bytes = static_cast<int64_t>(operands.output(0)->byte_size);
  ParameterWriter writer(nullptr, &plan->add(kernel, move_threads, blocks_of(bytes, widest_unit * move_threads)));
  copy_parameters(input, bytes, writer);
}

}  // namespace heddle::cuda
