#include "conformance/cases/meeting_sizes.h"

#include <map>

namespace heddle::conformance {

std::vector<Case> cases_where_sizes_meet(const std::string& type) {
  static const auto& calls = *new std::multimap<std::string, const char*>{
      {"Concat", "T[1]; axis=0"},
      {"Split", "T[1], i64[1] = 1 -> -"},
      {"Pad", "T[1], i64[2] = 0 0"},
      {"DepthToSpace", "T[1,1,1,1]; blocksize=1"},
      {"SpaceToDepth", "T[1,1,1,1]; blocksize=1"},
      {"ReverseSequence", "T[1,1], i64[1] = 1"},
      {"Trilu", "T[1,1]"},
      {"ConstantOfShape", "i64[1] = 1"},
      {"EyeLike", "T[1,1]"},
      {"Range", "T[] = 1, T[] = 2, T[] = 1"},
      {"Shape", "T[1]"},
      {"Gather", "T[1], i64[1] = 0"},
      {"GatherElements", "T[1], i64[1] = 0"},
      {"GatherND", "T[1], i64[1] = 0"},
      {"OneHot", "T[1] = 0, i64[] = 1, f32[2] = 2 3"},
      {"ScatterElements", "T[1], i64[1] = 0, T[1]"},
      {"ScatterND", "T[1], i64[1,1] = 0, T[1]"},
      {"Compress", "T[1], bool[1] = 1"},
      {"NonZero", "T[1] = 1"},
      {"MaxPool", "T[1,1,1]; kernel_shape=[1]"},
      {"AveragePool", "T[1,1,1]; kernel_shape=[1]"},
      {"LpPool", "T[1,1,1]; kernel_shape=[1]"},
      {"GlobalMaxPool", "T[1,1,1]"},
      {"GlobalAveragePool", "T[1,1,1]"},
      {"GlobalLpPool", "T[1,1,1]"},
      {"GridSample", "T[1,1,1,1], T[1,1,1,2] = 0"},
      {"RoiAlign", "T[1,1,1,1], T[1,4] = 0 0 1 1, i64[1] = 0; output_height=1, output_width=1"},
      {"Resize", "T[1,1,1], -, f32[3] = 1 1 1"},
      {"ArgMax", "T[1]"},
      {"ArgMin", "T[1]"},
      {"CumSum", "T[1], i64[] = 0"},
      {"LayerNormalization", "T[1], T[1]"},
      {"RMSNormalization", "T[1], T[1]"},
      {"LpNormalization", "T[1]"},
      {"MeanVarianceNormalization", "T[1,1,1,1]"},
      {"BatchNormalization", "T[1,1], T[1], T[1], T[1], T[1] = 1..2"},
      {"InstanceNormalization", "T[1,1,1], T[1], T[1]"},
      {"GroupNormalization", "T[1,1,1], T[1], T[1]; num_groups=1"},
      {"LRN", "T[1,1,1]; size=1"},
      {"NegativeLogLikelihoodLoss", "T[1,1], i64[1] = 0"},
      {"SoftmaxCrossEntropyLoss", "T[1,1], i64[1] = 0"},
      {"ConstantOfShape", "i64[3] = 1 3 1; value=i64[1] = 7"},
      {"Shape", "i64[2,1]; start=0"},
      {"OneHot", "i64[7] = 0..3, i64[] = 1, i64[2] = 2 3"},
      {"NonZero", "i64[7] = 1"},
      {"GlobalMaxPool", "T[3,5,1]"},
      {"GlobalAveragePool", "T[3,5,1]"},
      {"GlobalLpPool", "T[3,5,1]"},
      {"MatMul", "T[5,7], T[7,7]"},
      {"Gemm", "T[5,7], T[7,7]"},
      {"GridSample", "T[1,2,3,5], T[1,3,5,2] = -1.2..1.2"},
      {"RoiAlign", "T[1,2,3,3], T[1,4] = 0 0 2 2, i64[1] = 0; output_height=3, output_width=3"},
      {"RNN", "T[1,3,5], T[1,5,5], T[1,5,5]"},
      {"GRU", "T[1,3,5], T[1,15,5], T[1,15,5]"},
      {"LSTM", "T[1,3,5], T[1,20,5], T[1,20,5]"},
  };
  std::vector<Case> cases;
  const auto [first, last] = calls.equal_range(type);
  for (auto call = first; call != last; ++call) cases.push_back({Kind::odd, call->second});
  return cases;
}

}  // namespace heddle::conformance
