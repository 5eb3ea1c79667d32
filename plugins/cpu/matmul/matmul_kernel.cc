// Tiles of matrix products. See matmul_kernel.h.
#include "matmul/matmul_kernel.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "matmul/matmul_plain.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/float_sums.h"

namespace heddle::cpu {

using namespace onednn;

namespace {

constexpr double plain_flops = 4096;    // up to here plain loops are faster than a call of oneDNN
constexpr double flops_per_ns = 100.0;  // of one thread, a first guess
constexpr uint64_t alignment = 64;
constexpr int64_t few_columns = 16;
constexpr int64_t columns_by_rows = 4096;  // of one call, where tiles are rows
// A transposed a, and a b whose rows are `far_apart` floats apart or more (4 KiB: they meet in the same lines of the cache), are copied
// into scratch where each element is used `min_uses_of_copy` times and the tile's part is no larger than that. oneDNN reads a transposed
// b as fast as a copy of it.
constexpr int64_t min_uses_of_copy = 64, far_apart = 1024;
constexpr double max_bytes_copied = 8.0 * 1024 * 1024;

bool is_worth_copying(int64_t rows, int64_t columns, int64_t uses) {
  return uses >= min_uses_of_copy && static_cast<double>(rows) * static_cast<double>(columns) * sizeof(float) <= max_bytes_copied;
}

// True if a tile has few of the columns, of millions of terms: oneDNN adds the terms of a lone column one after the other, and small terms
// are lost in their large sum.
bool are_narrow(const std::vector<MatMulTile>& tiles, const MatMulProblem& problem) {
  return std::any_of(tiles.begin(), tiles.end(),
                     [&](const MatMulTile& tile) { return tile.columns < std::min(few_columns, problem.columns); });
}

}  // namespace

Status MatMulDriver::prepare(PrepareContext& context, MatMulProblem problem, Epilogue epilogue) {
  simplify(&problem);
  problem_ = std::move(problem);
  epilogue_ = std::move(epilogue);
  if (epilogue_.size() > max_epilogue_ops) return unsupported("more than 12 fused operators");
  dtype_ = static_cast<heddle_dtype>(context.output(0)->dtype);
  constant_b_ = context.is_constant(1);
  b_content_ = static_cast<const float*>(context.input(1)->data);
  std::vector<float> converted;
  if (in_float_tiles(dtype_) && packs_b()) {
    converted = constant_floats(*context.input(1));
    b_content_ = converted.data();
  }
  float_tiles_.begin(dtype_, problem_, epilogue_);
  primitives_.clear();
  tiles_.clear();
  a_copies_ = b_copies_ = {};
  bias_input_ = -1;
  first_epilogue_op_ = 0;
  context.set_tiles(0);
  if (context.output(0)->element_count == 0) return {};
  plain_ = problem_.flops() <= plain_flops;
  by_rows_ = in_double_ = false;
  const std::vector<MatMulTile> whole = {{0, problem_.images(), 0, problem_.rows, 0, problem_.columns}};
  if (plain_) {
    tiles_.push_back({whole[0]});
  } else if (const std::vector<MatMulTile> tiles = divide_matmul(problem_, constant_b_); are_narrow(tiles, problem_)) {
    plain_ = in_double_ = true;
    for (const MatMulTile& tile : tiles) tiles_.push_back({tile});
  } else if (!tiles.empty()) {
    if (!epilogue_.empty() && is_bias(epilogue_[0], HEDDLE_OPERAND_LAST_DIMENSION)) {
      bias_input_ = epilogue_[0].operand_input;
      first_epilogue_op_ = 1;
    }
    // Rounding differs between oneDNN's families of kernels: one operator uses one family, unless a tile would be too large for that.
    const bool divided = !may_be_one_tile(problem_);
    HEDDLE_PLUGIN_CHECK(build(context, tiles, divided));
    if (mixes_implementations() && !divided) HEDDLE_PLUGIN_CHECK(build(context, whole, true));
  } else {
    by_rows_ = plain_ = in_double_ = true;
  }
  epilogue_op_offset_ = 0;
  for (const auto& primitive : primitives_) epilogue_op_offset_ = std::max(epilogue_op_offset_, primitive->scratch_bytes());
  const auto aligned = [](uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  epilogue_op_offset_ = aligned(epilogue_op_offset_);
  a_copies_.at = aligned(epilogue_op_offset_ + epilogue_scratch_bytes(epilogue_));
  b_copies_.at = aligned(a_copies_.at + a_copies_.bytes);
  if (by_rows_) float_tiles_.add({1, 1, std::min(problem_.columns, columns_by_rows)}, false, false);
  for (const PlacedTile& placed : tiles_) float_tiles_.add(extents_of(placed), !in_double_, placed.packed != nullptr);
  context.set_scratch(0, float_tiles_.place(aligned(b_copies_.at + b_copies_.bytes)));
  if (by_rows_)
    row_tiling_.plan(context, problem_.flops(), 1.0);
  else
    context.set_tiles(static_cast<int64_t>(tiles_.size()));
  context.set_cost_ns(300.0 + problem_.flops() / (in_double_ ? 1.0 : flops_per_ns));
  return {};
}

Status MatMulDriver::choose_primitives() {
  size_t epilogue_ops = epilogue_.size() - first_epilogue_op_;
  choose_copies();
  for (size_t i = 0; i < primitives_.size(); ++i) {
    MatMulPrimitive& primitive = *primitives_[i];
    HEDDLE_PLUGIN_CHECK(
        primitive.choose(problem_of(primitive.extents()), packs_b(), bias_input_ >= 0, epilogue_, first_epilogue_op_, epilogue_ops));
    if (primitive.epilogue_ops() == epilogue_ops) continue;
    // All tiles apply the same epilogue ops by the same means, or results would differ at their borders.
    epilogue_ops = primitive.epilogue_ops();
    if (i > 0) i = static_cast<size_t>(-1);
  }
  return {};
}

void MatMulDriver::choose_copies() {
  a_copies_ = b_copies_ = {};
  if (!problem_.batch.empty()) return;
  const int64_t depth = problem_.depth;
  bool copies_a = problem_.a.is_transposed();
  bool copies_b = !float_tiles_.is_used() && !constant_b_ && problem_.b.column == 1 && problem_.b.row >= far_apart;
  for (const auto& primitive : primitives_) {
    const MatMulPrimitive::Extents& tile = primitive->extents();
    copies_a = copies_a && is_worth_copying(tile.rows, depth, tile.columns);
    copies_b = copies_b && tile.columns < problem_.b.row && is_worth_copying(depth, tile.columns, tile.rows);
  }
  for (const auto& primitive : primitives_) {
    const MatMulPrimitive::Extents& tile = primitive->extents();
    if (copies_a) a_copies_.add(problem_before_copies(tile).a, tile.rows, depth);
    if (copies_b) b_copies_.add(problem_.b, depth, tile.columns);
  }
}

MatMulProblem MatMulDriver::problem_before_copies(const MatMulPrimitive::Extents& tile) const {
  return float_tiles_.is_used() ? MatMulFloatTiles::laid_out(problem_, tile) : problem_;
}

MatMulProblem MatMulDriver::problem_of(const MatMulPrimitive::Extents& tile) const {
  MatMulProblem problem = problem_before_copies(tile);
  if (!a_copies_.copies.empty()) problem.a = {problem_.depth, 1, {}};
  if (!b_copies_.copies.empty()) problem.b = {tile.columns, 1, {}};
  return problem;
}

void MatMulDriver::TileCopies::add(const MatrixStrides& from, int64_t rows, int64_t columns) {
  constexpr int64_t width = sizeof(float);
  StridedCopy copy(width);
  copy.add(rows, from.row * width, columns * width);
  copy.add(columns, from.column * width, width);
  copy.finish();
  copies.push_back(copy);
  bytes = std::max(bytes, static_cast<uint64_t>(rows * columns * width));
}

const float* MatMulDriver::TileCopies::run(size_t primitive, const float* from, char* scratch) const {
  if (copies.empty()) return from;
  copies[primitive].run(from, scratch + at, 0, copies[primitive].units());
  return reinterpret_cast<const float*>(scratch + at);
}

Status MatMulDriver::build(PrepareContext& context, const std::vector<MatMulTile>& tiles, bool mixed) {
  const SerialSection serial;
  primitives_.clear();
  tiles_.clear();
  for (const MatMulTile& tile : tiles) {
    const MatMulPrimitive::Extents extents = {problem_.batch.size() <= 1 ? tile.images : 1, tile.rows, tile.columns};
    size_t index = 0;
    while (index < primitives_.size() && !(primitives_[index]->extents() == extents)) ++index;
    if (index == primitives_.size()) primitives_.push_back(std::make_unique<MatMulPrimitive>(extents));
    tiles_.push_back({tile, index});
  }
  HEDDLE_PLUGIN_CHECK(choose_primitives());
  if (mixes_implementations() && !mixed) return {};
  const uint32_t threads = std::min<uint32_t>(threads_, static_cast<uint32_t>(tiles_.size()));
  for (const auto& primitive : primitives_) HEDDLE_PLUGIN_CHECK(primitive->create(threads));
  if (packs_b())
    for (size_t i = 0; i < tiles_.size(); ++i) {
      // The tiles of a column are neighbours and most have one packed form.
      const bool same =
          i > 0 && tiles_[i - 1].primitive == tiles_[i].primitive && tiles_[i - 1].tile.first_column == tiles_[i].tile.first_column;
      if (same)
        tiles_[i].packed = tiles_[i - 1].packed;
      else
        HEDDLE_PLUGIN_CHECK(pack(context, &tiles_[i]));
    }
  return {};
}

bool MatMulDriver::mixes_implementations() const {
  for (const auto& primitive : primitives_)
    if (primitive->desc().implementation() != primitives_[0]->desc().implementation()) return true;
  return false;
}

Status MatMulDriver::pack(PrepareContext& context, PlacedTile* placed) const {
  const MatMulTile& tile = placed->tile;
  const MemoryDesc wanted = primitives_[placed->primitive]->desc().query(dnnl_query_weights_md);
  MemoryDesc plain;
  HEDDLE_PLUGIN_CHECK(describe({problem_.depth, tile.columns}, {problem_.b.row, problem_.b.column}, &plain));
  const std::string key = "matmul," + std::to_string(dtype_) + "," + std::to_string(tile.first_column) + "," +
                          std::to_string(problem_.b.row) + "," + key_of(wanted);
  Status packing;
  placed->packed = context.prepack(1, key, bytes_of(wanted), [&](void* target) {
    packing = copy_once(plain, b_content_ + tile.first_column * problem_.b.column, wanted, target);
  });
  HEDDLE_PLUGIN_CHECK(packing);
  if (!placed->packed) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for packed weights"};
  return {};
}

// The operands and the output of one call, each pointer at its first element.
struct MatMulDriver::Place {
  const float* a = nullptr;
  const float* b = nullptr;
  float* y = nullptr;
  MatrixSteps a_steps, b_steps;
  int64_t y_row = 0, y_apart = 0;  // from a row to the next, from an image to the next
  const float* bias = nullptr;
  std::array<const float*, max_epilogue_ops> operands = {};
  int64_t first_row = 0, first_column = 0;  // in the operands of rows and of columns
};

MatMulPrimitive::Extents MatMulDriver::extents_of(const PlacedTile& placed) const {
  if (!plain_) return primitives_[placed.primitive]->extents();
  return {1, placed.tile.rows, placed.tile.columns};
}

MatMulDriver::Place MatMulDriver::find(const RunContext& context, const PlacedTile& placed, int64_t image) const {
  const MatMulTile& tile = placed.tile;
  const int64_t y_offset = first_of_y(tile, image);
  Place place;
  place.a_steps = problem_.a;
  place.b_steps = problem_.b;
  place.y_row = problem_.y.row;
  if (!problem_.y.batch.empty()) place.y_apart = problem_.y.batch[0];
  place.first_row = tile.first_row;
  place.first_column = tile.first_column;
  place.a =
      static_cast<const float*>(context.inputs[0]->data) + image_offset(problem_, problem_.a, image) + tile.first_row * problem_.a.row;
  place.b = static_cast<const float*>(context.inputs[1]->data) + image_offset(problem_, problem_.b, image) +
            tile.first_column * problem_.b.column;
  place.y = static_cast<float*>(context.outputs[0]->data) + y_offset;
  if (bias_input_ >= 0) place.bias = static_cast<const float*>(context.inputs[bias_input_]->data);
  for (size_t i = 0; i < epilogue_.size(); ++i) {
    if (epilogue_[i].operand_input < 0) continue;
    place.operands[i] = static_cast<const float*>(context.inputs[epilogue_[i].operand_input]->data);
    if (epilogue_[i].operand_kind == HEDDLE_OPERAND_SAME_SHAPE) place.operands[i] += y_offset;
  }
  return place;
}

MatMulDriver::Place MatMulDriver::load(const RunContext& context, const PlacedTile& placed, int64_t image, char* scratch) const {
  const MatMulTile& tile = placed.tile;
  const MatMulPrimitive::Extents extents = extents_of(placed);
  Place place;
  place.a_steps = MatMulFloatTiles::dense_steps(problem_.a, tile.rows, problem_.depth);
  place.b_steps = MatMulFloatTiles::dense_steps(problem_.b, problem_.depth, tile.columns);
  place.y_row = tile.columns;
  place.y_apart = tile.rows * tile.columns;
  place.y = float_tiles_.y(scratch);
  if (!in_double_) {
    const int64_t a_first = image_offset(problem_, problem_.a, image) + tile.first_row * problem_.a.row;
    const int64_t b_first = image_offset(problem_, problem_.b, image) + tile.first_column * problem_.b.column;
    place.a = float_tiles_.load_a(problem_, extents, context.inputs[0]->data, a_first, scratch);
    if (!placed.packed) place.b = float_tiles_.load_b(problem_, extents, context.inputs[1]->data, b_first, scratch);
  }
  for (size_t i = 0; i < epilogue_.size(); ++i)
    if (epilogue_[i].operand_input >= 0)
      place.operands[i] = float_tiles_.load_operand(epilogue_, i, tile, context.inputs[epilogue_[i].operand_input]->data,
                                                    first_of_y(tile, image), problem_.y.row, scratch);
  if (bias_input_ >= 0) place.bias = place.operands[0];
  return place;
}

int64_t MatMulDriver::first_of_y(const MatMulTile& tile, int64_t image) const {
  return image_offset(problem_, problem_.y, image) + tile.first_row * problem_.y.row + tile.first_column * problem_.y.column;
}

Status MatMulDriver::run_plain(const RunContext& context, const MatMulTile& tile, const Place& place) const {
  StridedProduct<float> product;
  product.rows = tile.rows;
  product.columns = tile.columns;
  product.depth = problem_.depth;
  product.a = place.a;
  product.b = place.b;
  product.y = place.y;
  product.a_row = place.a_steps.row;
  product.a_column = place.a_steps.column;
  product.b_row = place.b_steps.row;
  product.b_column = place.b_steps.column;
  product.y_row = place.y_row;
  CancellationPoll poll(context);
  multiply(product, poll);
  return poll.status();
}

// Sums are double: with so many terms a float would stop growing.
template <class T>
Status MatMulDriver::run_in_double(const RunContext& context, const MatMulTile& tile, int64_t image, const Place& place) const {
  constexpr int64_t width = 64, terms_per_poll = 256;
  const T* a = static_cast<const T*>(context.inputs[0]->data) + image_offset(problem_, problem_.a, image);
  const T* b = static_cast<const T*>(context.inputs[1]->data) + image_offset(problem_, problem_.b, image);
  const auto wide = [](T value) { return static_cast<double>(to_arithmetic(value)); };
  CancellationPoll poll(context);
  for (int64_t row = 0; row < tile.rows; ++row)
    for (int64_t first = 0; first < tile.columns; first += width) {
      const int64_t n = std::min(width, tile.columns - first);
      double sums[width] = {};
      for (int64_t begin = 0; begin < problem_.depth; begin += terms_per_poll) {
        const int64_t terms = std::min(terms_per_poll, problem_.depth - begin);
        if (poll.stops(n * terms)) return cancelled();
        const T* factors = a + (tile.first_row + row) * problem_.a.row + begin * problem_.a.column;
        const T* from = b + begin * problem_.b.row + (tile.first_column + first) * problem_.b.column;
        if (n == 1) {  // a dot product: its sum stays in a register
          double sum = sums[0];
          for (int64_t k = 0; k < terms; ++k) sum += wide(factors[k * problem_.a.column]) * wide(from[k * problem_.b.row]);
          sums[0] = sum;
          continue;
        }
        for (int64_t k = 0; k < terms; ++k, from += problem_.b.row) {
          const double factor = wide(factors[k * problem_.a.column]);
          for (int64_t j = 0; j < n; ++j) sums[j] += factor * wide(from[j * problem_.b.column]);
        }
      }
      for (int64_t j = 0; j < n; ++j) place.y[row * place.y_row + first + j] = static_cast<float>(sums[j]);
    }
  return {};
}

Status MatMulDriver::sum(const RunContext& context, const PlacedTile& placed, int64_t image, const Place& place, char* scratch,
                         size_t* done) const {
  if (in_double_)
    return with_float(dtype_, [&](auto tag) { return run_in_double<typename decltype(tag)::type>(context, placed.tile, image, place); });
  if (plain_) return run_plain(context, placed.tile, place);
  MatMulPrimitive::Buffers buffers = {};
  buffers.a = a_copies_.run(placed.primitive, place.a, scratch);
  buffers.b = placed.packed ? placed.packed : b_copies_.run(placed.primitive, place.b, scratch);
  buffers.bias = place.bias;
  buffers.operands = place.operands.data();
  buffers.y = place.y;
  buffers.first_row = place.first_row;
  buffers.first_column = place.first_column;
  buffers.scratch = scratch;
  size_t epilogue_ops = 0;
  HEDDLE_PLUGIN_CHECK(primitives_[placed.primitive]->run(buffers, &epilogue_ops));
  *done += epilogue_ops;
  return {};
}

Status MatMulDriver::run_images(const RunContext& context, const PlacedTile& placed, int64_t image, char* scratch) const {
  const MatMulTile& tile = placed.tile;
  Place place = float_tiles_.is_used() ? load(context, placed, image, scratch) : find(context, placed, image);
  const MatMulPrimitive::Extents extents = extents_of(placed);
  size_t done = first_epilogue_op_;
  HEDDLE_PLUGIN_CHECK(sum(context, placed, image, place, scratch, &done));
  for (int64_t i = 0; i < extents.images && done < epilogue_.size(); ++i) {
    const TileRegion region = {place.y, place.y_row, tile.rows, tile.columns, place.first_row, place.first_column};
    apply_epilogue_ops(epilogue_, done, place.operands.data(), region, scratch + epilogue_op_offset_);
    place.y += place.y_apart;
    for (size_t k = 0; k < epilogue_.size(); ++k)
      if (epilogue_[k].operand_kind == HEDDLE_OPERAND_SAME_SHAPE) place.operands[k] += place.y_apart;
  }
  if (float_tiles_.is_used()) float_tiles_.store_y(problem_, extents, context.outputs[0]->data, first_of_y(tile, image), scratch);
  return {};
}

Status MatMulDriver::run_rows(const RunContext& context, int64_t begin, int64_t end, char* scratch) const {
  const Tiling::Range rows = row_tiling_.range(problem_.images() * problem_.rows, begin, end);
  for (int64_t row = rows.first; row < rows.last; ++row)
    for (int64_t first = 0; first < problem_.columns; first += columns_by_rows) {
      const int64_t columns = std::min(columns_by_rows, problem_.columns - first);
      const PlacedTile placed = {{row / problem_.rows, 1, row % problem_.rows, 1, first, columns}};
      HEDDLE_PLUGIN_CHECK(run_images(context, placed, placed.tile.first_image, scratch));
    }
  return {};
}

Status MatMulDriver::run(const RunContext& context, int64_t begin, int64_t end) const {
  auto* scratch = thread_scratch<char>(context);
  if (by_rows_) return run_rows(context, begin, end, scratch);
  const SerialSection serial;
  for (int64_t t = begin; t < end; ++t) {
    const PlacedTile& placed = tiles_[static_cast<size_t>(t)];
    const int64_t step = plain_ ? 1 : primitives_[placed.primitive]->extents().images;
    for (int64_t i = 0; i < placed.tile.images; i += step)
      HEDDLE_PLUGIN_CHECK(run_images(context, placed, placed.tile.first_image + i, scratch));
  }
  return {};
}

}  // namespace heddle::cpu
