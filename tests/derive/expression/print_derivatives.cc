// Prints random programs, points, and the values of the programs and of their derivatives there, for against_pytorch.py:
//
//   heddle_print_derivatives PROGRAMS SEED
//   program TEXT      then for each of its points a line   at X0 ... value Y derivatives D0 ... (for dy = 1)
#include <cstdio>
#include <cstdlib>

#include "derive/expression/expression_derivative.h"
#include "derive/expression/random_programs.h"
#include "heddle/expression_evaluate.h"

int main(int count, char** words) {
  using namespace heddle;
  using namespace heddle::testing_derive;
  if (count != 3) {
    std::fprintf(stderr, "heddle_print_derivatives PROGRAMS SEED\n");
    return 2;
  }
  uint64_t state = std::strtoull(words[2], nullptr, 10);
  RandomPrograms random(state);
  for (long k = std::strtol(words[1], nullptr, 10); k > 0; --k) {
    expression::Program program = random.whole(1 + below(state, 3), 4 + below(state, 16));
    std::printf("program %s\n", expression::print(program).c_str());
    for (int point = 0; point < 6; ++point) {
      // The kinks are at whole numbers.
      std::vector<double> at;
      for (size_t i = 0; i < program.inputs.size(); ++i)
        at.push_back(below(state, 4) == 0 ? static_cast<double>(below(state, 5)) - 2 : uniform(state) * 4 - 2);
      std::printf("at");
      for (const double x : at) std::printf(" %.17g", x);
      const double y = *expression::evaluate<double>(program, at.data());
      std::printf(" value %.17g derivatives", y);
      std::vector<double> given = at;
      given.push_back(1);
      given.push_back(y);
      for (size_t i = 0; i < program.inputs.size(); ++i) {
        auto derived = expression_derivative(program, i);
        if (!derived.ok()) {
          std::fprintf(stderr, "%s\n", derived.status().text().c_str());
          return 1;
        }
        std::printf(" %.17g", *expression::evaluate<double>(*derived, given.data()));
      }
      std::printf("\n");
    }
  }
}
