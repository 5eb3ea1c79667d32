// Running a Program: binds the operands of one block after the other to slots, then calls each step once per block.
//
// An operand of a block is read in place when it is stored as computed, contiguous and whole vectors long; it is one vector when it is the
// same for all elements; else it is copied (gathered, converted) into the input's buffer. Only those copies have odd remainders, so steps
// have no scalar tail.
#include <algorithm>
#include <cstring>

#include "pointwise/pointwise_frame.h"
#include "pointwise/pointwise_program.h"
#include "shared/pointwise_region.h"
#include "support/cpu_api.h"
#include "vector/convert.h"

namespace heddle::cpu {
namespace {

// Rows at least this long are blocks of their own; shorter ones are gathered, several to a block.
constexpr int64_t long_row = 128;

// `rows` x `columns` elements of `width` bytes, strides in bytes, packed to `to`.
template <size_t width>
void gather(char* to, const char* from, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r, from += row_stride) {
    if (column_stride == static_cast<int64_t>(width)) {
      std::memcpy(to, from, static_cast<size_t>(columns) * width);
      to += static_cast<size_t>(columns) * width;
      continue;
    }
    const char* element = from;
    for (int64_t c = 0; c < columns; ++c, element += column_stride, to += width) std::memcpy(to, element, width);
  }
}
void gather(size_t width, char* to, const char* from, int64_t row_stride, int64_t column_stride, int64_t rows, int64_t columns) {
  switch (width) {
    case 1:
      return gather<1>(to, from, row_stride, column_stride, rows, columns);
    case 2:
      return gather<2>(to, from, row_stride, column_stride, rows, columns);
    case 4:
      return gather<4>(to, from, row_stride, column_stride, rows, columns);
    default:
      return gather<8>(to, from, row_stride, column_stride, rows, columns);
  }
}

}  // namespace

class Program::Runner {
 public:
  Runner(const Program& program, void* scratch)
      : program_(program),
        layout_(program.slot_count(), program.register_count_, program.inputs_.size()),
        memory_(static_cast<char*>(scratch)),
        slots_(reinterpret_cast<InstructionOperand*>(memory_ + layout_.slots)),
        inputs_(slots_ + program.constant_count_ + program.register_count_),
        cursors_(reinterpret_cast<const char**>(memory_ + layout_.cursors)),
        width_(program.compute_width_),
        output_width_(static_cast<int64_t>(plugin::byte_width(program.output_dtype_))) {
    const char* constants = reinterpret_cast<const char*>(program.constants_.data());
    for (uint16_t i = 0; i < program.constant_count_; ++i) slots_[i] = {constants + i * instruction_alignment, 0};
    for (uint16_t i = 0; i < program.register_count_; ++i)
      slots_[program.constant_count_ + i] = {memory_ + layout_.registers + i * block_bytes, 1};
  }

  size_t input_count() const { return program_.inputs_.size(); }
  bool used(size_t input) const { return program_.inputs_[input].used; }
  int64_t element_width(size_t input) const { return static_cast<int64_t>(plugin::byte_width(program_.inputs_[input].dtype)); }
  int64_t output_width() const { return output_width_; }
  int64_t block_elements() const { return block_bytes / width_; }
  char* staging() const { return memory_ + layout_.staging; }
  const char*& cursor(size_t input) { return cursors_[input]; }

  void bind_scalar(size_t input, const char* data) {
    char value[8];
    convert(program_.inputs_[input].dtype, data, program_.compute_dtype_, value, 1);
    char* lanes = buffer(input);
    for (int64_t at = 0; at < instruction_alignment; at += width_) std::memcpy(lanes + at, value, static_cast<size_t>(width_));
    inputs_[input] = {lanes, 0};
  }
  void bind_contiguous(size_t input, const char* data, int64_t count) {
    if (program_.inputs_[input].direct && count * width_ % instruction_alignment == 0) {
      inputs_[input] = {data, 1};
      return;
    }
    convert(program_.inputs_[input].dtype, data, program_.compute_dtype_, buffer(input), count);
    inputs_[input] = {buffer(input), 1};
  }
  // Returns where to gather a block of raw elements before bind_gathered.
  char* gather_target(size_t input) { return program_.inputs_[input].direct ? buffer(input) : staging(); }
  void bind_gathered(size_t input, int64_t count) {
    if (!program_.inputs_[input].direct) convert(program_.inputs_[input].dtype, staging(), program_.compute_dtype_, buffer(input), count);
    inputs_[input] = {buffer(input), 1};
  }

  // Computes a block of bound operands.
  void execute(char* output, int64_t count) {
    const int64_t bytes = (count * width_ + instruction_alignment - 1) / instruction_alignment * instruction_alignment;
    const bool direct = program_.direct_output_ && bytes == count * width_;
    char* result = direct ? output : memory_ + layout_.output;
    slots_[program_.slot_count() - 1] = {result, 1};
    for (const Step& step : program_.steps_) {
      InstructionOperand operands[3];
      for (uint16_t i = 0; i < step.operand_count; ++i) operands[i] = slots_[step.operands[i]];
      step.function(operands, const_cast<void*>(slots_[step.result].data), bytes);
    }
    if (!direct) convert(program_.compute_dtype_, result, program_.output_dtype_, output, count);
  }

  // Processes the elements of one row: whole vectors first, so that all but the last few are read and written in place. Byte strides per
  // column; cursors point at the row's first element.
  template <class ColumnStride>
  void run_row(char* output, int64_t columns, ColumnStride column_stride) {
    const int64_t lanes = instruction_alignment / width_;
    for (size_t i = 0; i < input_count(); ++i)
      if (used(i) && column_stride(i) == 0) bind_scalar(i, cursor(i));
    for (int64_t begin = 0; begin < columns;) {
      int64_t count = std::min(block_elements(), columns - begin);
      if (count > lanes) count -= count % lanes;
      for (size_t i = 0; i < input_count(); ++i) {
        if (!used(i) || column_stride(i) == 0) continue;
        const int64_t width = element_width(i), stride = column_stride(i) * width;
        const char* data = cursor(i) + begin * stride;
        if (stride == width) {
          bind_contiguous(i, data, count);
        } else {
          gather(static_cast<size_t>(width), gather_target(i), data, 0, stride, 1, count);
          bind_gathered(i, count);
        }
      }
      execute(output + begin * output_width_, count);
      begin += count;
    }
  }

 private:
  char* buffer(size_t input) const { return memory_ + layout_.inputs + input * block_bytes; }

  const Program& program_;
  const FrameLayout layout_;
  char* const memory_;
  InstructionOperand* const slots_;
  InstructionOperand* const inputs_;
  const char** const cursors_;
  const int64_t width_;
  const int64_t output_width_;
};

void Program::run_rows(const Source* sources, void* output, int64_t output_row_stride, int64_t rows, int64_t columns, void* scratch) const {
  Runner runner(*this, scratch);
  char* y = static_cast<char*>(output);
  const auto stride_of = [&](size_t i) { return sources[i].column_stride; };
  if (columns >= long_row || rows == 1) {
    for (int64_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < inputs_.size(); ++i)
        runner.cursor(i) = static_cast<const char*>(sources[i].data) + r * sources[i].row_stride * runner.element_width(i);
      runner.run_row(y + r * output_row_stride * runner.output_width(), columns, stride_of);
    }
    return;
  }
  if (columns <= 0) return;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (runner.used(i) && sources[i].row_stride == 0 && sources[i].column_stride == 0)
      runner.bind_scalar(i, static_cast<const char*>(sources[i].data));
  const int64_t rows_per_block = runner.block_elements() / columns;
  for (int64_t r = 0; r < rows; r += rows_per_block) {
    const int64_t n = std::min(rows_per_block, rows - r), count = n * columns;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Source& source = sources[i];
      if (!runner.used(i) || (source.row_stride == 0 && source.column_stride == 0)) continue;
      const int64_t width = runner.element_width(i);
      const char* data = static_cast<const char*>(source.data) + r * source.row_stride * width;
      if (source.column_stride == 1 && source.row_stride == columns) {
        runner.bind_contiguous(i, data, count);
        continue;
      }
      gather(static_cast<size_t>(width), runner.gather_target(i), data, source.row_stride * width, source.column_stride * width, n,
             columns);
      runner.bind_gathered(i, count);
    }
    char* to = y + r * output_row_stride * runner.output_width();
    const bool packed = output_row_stride == columns;
    runner.execute(packed ? to : runner.staging(), count);
    const size_t row_bytes = static_cast<size_t>(columns * runner.output_width());
    for (int64_t k = 0; !packed && k < n; ++k)
      std::memcpy(to + k * output_row_stride * runner.output_width(), runner.staging() + static_cast<size_t>(k) * row_bytes, row_bytes);
  }
}

namespace {

// A position in a region, advanced along its last dimension and then, row by row, through the outer ones.
class Position {
 public:
  Position(const Region& region, int64_t element) : region_(region) {
    for (int i = region.rank - 1; i >= 0; --i) {
      index_[i] = element % region.dims[i];
      element /= region.dims[i];
    }
  }
  int64_t column() const { return index_[region_.rank - 1]; }
  int64_t offset(const Region::Input& input) const {
    int64_t sum = 0;
    for (int i = 0; i < region_.rank; ++i) sum += index_[i] * input.strides[i];
    return sum;
  }
  void advance(int64_t count) {
    index_[region_.rank - 1] += count;
    for (int i = region_.rank - 1; i > 0 && index_[i] == region_.dims[i]; --i) {
      index_[i] = 0;
      ++index_[i - 1];
    }
  }

 private:
  const Region& region_;
  int64_t index_[HEDDLE_MAX_RANK] = {};
};

}  // namespace

void Program::run_region(const Region& region, const void* const* inputs, void* output, int64_t begin, int64_t end, void* scratch) const {
  if (begin >= end) return;
  Runner runner(*this, scratch);
  char* y = static_cast<char*>(output);
  const int last = region.rank - 1;
  const int64_t row = region.dims[last];
  const auto data_of = [&](size_t i) { return static_cast<const char*>(inputs[i]); };
  if (region.rank == 1 || row >= long_row) {
    Position position(region, begin);
    const auto stride_of = [&](size_t i) { return region.inputs[i].strides[last]; };
    for (int64_t at = begin; at < end;) {
      const int64_t count = std::min(row - position.column(), end - at);
      for (size_t i = 0; i < inputs_.size(); ++i)
        if (inputs_[i].used) runner.cursor(i) = data_of(i) + position.offset(region.inputs[i]) * runner.element_width(i);
      runner.run_row(y + at * runner.output_width(), count, stride_of);
      at += count;
      position.advance(count);
    }
    return;
  }
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].used && region.inputs[i].scalar) runner.bind_scalar(i, data_of(i));
  for (int64_t at = begin; at < end;) {
    const int64_t count = std::min(runner.block_elements(), end - at);
    const Position position(region, at);
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Region::Input& input = region.inputs[i];
      if (!inputs_[i].used || input.scalar) continue;
      const int64_t width = runner.element_width(i);
      if (input.linear) {
        runner.bind_contiguous(i, data_of(i) + at * width, count);
        continue;
      }
      char* to = runner.gather_target(i);
      Position p = position;
      for (int64_t done = 0; done < count;) {
        const int64_t n = std::min(row - p.column(), count - done);
        gather(static_cast<size_t>(width), to + done * width, data_of(i) + p.offset(input) * width, 0, input.strides[last] * width, 1, n);
        done += n;
        p.advance(n);
      }
      runner.bind_gathered(i, count);
    }
    runner.execute(y + at * runner.output_width(), count);
    at += count;
  }
}

}  // namespace heddle::cpu
