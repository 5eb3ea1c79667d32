#include "conformance/covered.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/text/text.h"

namespace heddle::conformance {
namespace {

class Table : public ::testing::Environment {
 public:
  void TearDown() override {
    if (covered().empty()) return;
    Covered sum;
    fmt::print("{:34} {:>4} {:>5} {:>5} {:>5} {:>5} {:>5} {:>5} {:>6} {:>6} {:>6} {:>6}  dtypes\n", "operator", "", "odd", "empty", "bcast",
               "strid", "rank", "large", "layout", "inplac", "fused", "runs");
    for (const auto& [name, c] : covered()) {
      fmt::print("{:34} {:>4}", name, c.dtypes.size());
      for (int k = 0; k < kind_count; ++k) {
        fmt::print(" {:>5}", c.calls[k]);
        sum.calls[k] += c.calls[k];
      }
      sum.runs += c.runs;
      fmt::print(" {:>6} {:>6} {:>6} {:>6}  {}\n", c.layouts, c.in_place, std::accumulate(c.epilogues, c.epilogues + kind_count, 0), c.runs,
                 join(std::vector<std::string>(c.dtypes.begin(), c.dtypes.end()), " "));
    }
    fmt::print("{} operators, {} calls, {} runs\n", covered().size(),
               sum.calls[0] + sum.calls[1] + sum.calls[2] + sum.calls[3] + sum.calls[4] + sum.calls[5], sum.runs);
  }
};
const ::testing::Environment* const table = ::testing::AddGlobalTestEnvironment(new Table());

}  // namespace

std::map<std::string, Covered>& covered() {
  static auto& all = *new std::map<std::string, Covered>();
  return all;
}

}  // namespace heddle::conformance
