// Operators that move parts of a tensor: blocks of pixels, sequences in a batch, triangles of matrices.
#include "conformance/cases/movement.h"

namespace heddle::conformance {
namespace reference_block {
namespace {

const std::map<Kind, std::string> of_images = {one_input, takes_no_steps};

Row depth_to_space() {
  return {.type = "DepthToSpace",
          .reference =
              [](const Call& c) {
                const Shape& x = c[0].shape;
                const int64_t block = c.i("blocksize", 0), depth = x[1] / (block * block);
                const bool depth_first = c.s("mode", "DCR") == "CRD";
                return std::vector{moved(c[0], {x[0], depth, x[2] * block, x[3] * block}, [&](const Ints& to) {
                  const int64_t pixel = to[2] % block * block + to[3] % block;
                  const int64_t channel = depth_first ? to[1] * block * block + pixel : pixel * depth + to[1];
                  return Ints{to[0], channel, to[2] / block, to[3] / block};
                })};
              },
          .cases = {{Kind::odd, "T[3,12,5,7]; blocksize=2"},
                    {Kind::odd, "T[3,12,5,7]; blocksize=2, mode=\"CRD\""},
                    {Kind::odd, "T[1,27,3,1]; blocksize=3"},
                    {Kind::odd, "T[2,27,1,17]; blocksize=3, mode=\"CRD\""},
                    {Kind::odd, "T[2,5,3,7]; blocksize=1, mode=\"DCR\""},
                    {Kind::odd, "f32[1,8,1,1] = nan inf -inf 0 -0.0 1 2 3; blocksize=2"},
                    {Kind::empty, "T[0,4,3,3]; blocksize=2"},
                    {Kind::empty, "T[2,4,0,3]; blocksize=2, mode=\"CRD\""},
                    {Kind::rank, "T[2,16,2,3]; blocksize=4"},
                    {Kind::large, "T[3,36,31,33]; blocksize=3"},
                    {Kind::large, "f64[3,36,31,33]; blocksize=2, mode=\"CRD\""},
                    {Kind::large, "u8[5,20,71,83]; blocksize=2"}},
          .without = of_images};
}

Row space_to_depth() {
  return {.type = "SpaceToDepth",
          .reference =
              [](const Call& c) {
                const Shape& x = c[0].shape;
                const int64_t block = c.i("blocksize", 0);
                return std::vector{moved(c[0], {x[0], x[1] * block * block, x[2] / block, x[3] / block}, [&](const Ints& to) {
                  const int64_t pixel = to[1] / x[1];
                  return Ints{to[0], to[1] % x[1], to[2] * block + pixel / block, to[3] * block + pixel % block};
                })};
              },
          .cases = {{Kind::odd, "T[3,5,4,14]; blocksize=2"},
                    {Kind::odd, "T[1,1,9,33]; blocksize=3"},
                    {Kind::odd, "T[2,5,3,7]; blocksize=1"},
                    {Kind::odd, "f32[1,1,2,4] = nan inf -inf 0 -0.0 1 2 3; blocksize=2"},
                    {Kind::empty, "T[0,4,4,4]; blocksize=2"},
                    {Kind::empty, "T[2,4,0,4]; blocksize=2"},
                    {Kind::rank, "T[2,3,8,4]; blocksize=4"},
                    {Kind::large, "T[3,4,93,99]; blocksize=3"},
                    {Kind::large, "f64[3,5,102,74]; blocksize=2"},
                    {Kind::large, "u8[5,5,142,166]; blocksize=2"}},
          .without = of_images};
}

Row reverse_sequence() {
  return {.type = "ReverseSequence",
          .reference =
              [](const Call& c) {
                const int64_t batch = c.i("batch_axis", 1), time = c.i("time_axis", 0);
                const Ints lengths = c.list(1);
                return std::vector{moved(c[0], c[0].shape, [&](Ints at) {
                  const int64_t length = lengths[at[batch]];
                  if (at[time] < length) at[time] = length - 1 - at[time];
                  return at;
                })};
              },
          .cases = {{Kind::odd, "T[7,5], i64[5] = 1 7 4 2 3"},
                    {Kind::odd, "T[5,7], i64[5] = 1 7 4 2 3; batch_axis=0, time_axis=1"},
                    {Kind::odd, "T[7,3,17], i64[3] = 6 1 7"},
                    {Kind::odd, "T[3,7,17], i64[3] = 6 1 7; time_axis=1, batch_axis=0"},
                    {Kind::odd, "f32[6,1] = nan inf -inf 0 -0.0 1, i64[1] = 5"},
                    {Kind::empty, "T[7,0], i64[0]"},
                    {Kind::empty, "T[3,2,0], i64[2] = 3 2"},
                    {Kind::rank, "T[3,2,1,2,1,2,1,3], i64[2] = 3 2"},
                    {Kind::rank, "T[2,3,1,2,1,2,1,3], i64[2] = 3 2; batch_axis=0, time_axis=1"},
                    {Kind::large, "T[103,7,143], i64[7] = 1 103 57 102 2 99 50"},
                    {Kind::large, "T[7,103,143], i64[7] = 1 103 57 102 2 99 50; batch_axis=0, time_axis=1"},
                    {Kind::large, "u8[5,101,1151], i64[5] = 1 101 57 100 2; batch_axis=0, time_axis=1"}},
          .without = {{Kind::broadcast, "lengths are as many as batch entries"}, {Kind::strided, "it takes whole tensors"}}};
}

Row trilu() {
  return {.type = "Trilu",
          .reference =
              [](const Call& c) {
                Numbers result = c[0];
                const int rank = c[0].shape.rank();
                const int64_t diagonal = c.has(1) ? c.list(1)[0] : 0;
                for (int64_t i = 0; i < result.size(); ++i) {
                  const Ints at = position_of(i, c[0].shape);
                  // In long double no difference is too large.
                  const Number above = static_cast<Number>(at[rank - 1]) - at[rank - 2] - diagonal;
                  if (c.i("upper", 1) != 0 ? above < 0 : above > 0) result.values[i] = 0;
                }
                return std::vector{result};
              },
          .cases = {{Kind::odd, "T[7,5]"},
                    {Kind::odd, "T[5,7]; upper=0"},
                    {Kind::odd, "T[3,5,17], i64[] = 2"},
                    {Kind::odd, "T[3,17,5], i64[] = -3"},
                    {Kind::odd, "T[3,5,17], i64[] = 2; upper=0"},
                    {Kind::odd, "T[3,17,5], i64[1] = -3; upper=0"},
                    {Kind::odd, "T[4,4], i64[] = 100"},
                    {Kind::odd, "T[4,4], i64[] = -100"},
                    {Kind::odd, "T[4,4], i64[] = 9223372036854775807; upper=0"},
                    {Kind::odd, "T[4,4], i64[] = -9223372036854775808; upper=0"},
                    {Kind::odd, "f32[3,2] = nan inf -inf 0 -0.0 1; upper=0"},
                    {Kind::odd, "f32[3,2] = nan inf -inf nan -0.0 nan"},
                    {Kind::empty, "T[0,3]"},
                    {Kind::empty, "T[3,0], i64[] = 1; upper=0"},
                    {Kind::empty, "T[0,3,2], i64[] = -1"},
                    {Kind::rank, "T[1,2,1,2,1,2,4,3]"},
                    {Kind::rank, "T[1,2,1,2,1,2,3,4], i64[] = -1; upper=0"},
                    {Kind::large, "T[301,357], i64[] = 9"},
                    {Kind::large, "T[301,357], i64[] = -9; upper=0"},
                    {Kind::large, "u8[7,301,351], i64[] = 5"}},
          .without = {one_input, takes_no_steps}};
}

}  // namespace
}  // namespace reference_block

std::vector<Row> block_rows() {
  using namespace reference_block;
  return {depth_to_space(), space_to_depth(), reverse_sequence(), trilu()};
}

}  // namespace heddle::conformance
