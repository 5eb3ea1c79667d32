// Gradients that are built before any extent is known, for operators that move, reduce, multiply and sample.
#include <functional>

#include "derive/derived_run.h"

namespace heddle {
namespace {

using namespace testing_derive;
using Inputs = std::vector<ValueId>;
using Build = std::function<ValueId(NetBuilder&, const Inputs&)>;

// Inputs with their extents; those with a letter are open when the net is derived: Open{{4, 5}, "n."}.
struct Open {
  Shape shape;
  std::string letters;  // if shorter, the other extents are known
};

// Checks the gradients of the sum of squares of the value that `build` builds.
void check(const std::string& name, const std::vector<Open>& opened, const Build& build) {
  NetBuilder b(name);
  Inputs inputs;
  Values at;
  std::vector<Shape> shapes;
  for (size_t i = 0; i < opened.size(); ++i) {
    DeclaredType type;
    type.dtype = DType::f64;
    type.ranked = true;
    const auto& [shape, letters] = opened[i];
    for (int d = 0; d < shape.rank(); ++d) {
      const char letter = static_cast<size_t>(d) < letters.size() ? letters[static_cast<size_t>(d)] : '.';
      type.dims.push_back(letter == '.' ? Dim::of(shape[d]) : Dim::named(std::string(1, letter)));
    }
    inputs.push_back(b.input("x" + std::to_string(i), type));
    at.push_back(numbers(shape, static_cast<int>(i) + 3));
    shapes.push_back(shape);
  }
  const ValueId y = build(b, inputs);
  b.output(b.add1("Mul", "loss", {y, y}));
  expect_gradients(b.finish(), "loss", at, 1e-6, shapes);
}

ValueId ints(NetBuilder& b, const char* name, const std::vector<int64_t>& values) {
  return b.constant_ints(name, values);
}
ValueId matrix_of_ints(NetBuilder& b, const char* name, const Shape& shape, const std::vector<int64_t>& values) {
  return b.constant(name, Blob::copy_of(DType::i64, shape, values.data()));
}
ValueId yes_or_no(NetBuilder& b, const char* name, const Shape& shape, const std::vector<uint8_t>& values) {
  return b.constant(name, Blob::copy_of(DType::boolean, shape, values.data()));
}

TEST(GradientsOfOpenShapes, OfMovement) {
  check("slice", {Open{{4, 5}, "nm"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("Slice", "y", {x[0], ints(b, "s", {-1, 0}), ints(b, "e", {-9, 4}), ints(b, "a", {0, 1}), ints(b, "t", {-2, 3})});
  });
  for (const std::string mode : {"constant", "edge", "reflect", "wrap"})
    check(mode, {Open{{3, 4}, "nm"}, Open{{}, ""}}, [&](NetBuilder& b, const Inputs& x) {
      return b.add1("Pad", "y", {x[0], ints(b, "p", {2, -1, 1, 3}), x[1]}, {{"mode", mode}});
    });
  check("split", {Open{{5, 2}, ".n"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add("Split", "parts", {x[0], ints(b, "s", {2, 3})}, 2)[1];
  });
  check("concat", {Open{{2, 3}, "nm"}, Open{{2, 1}, "nk"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("Concat", "y", {x[0], x[1], x[0]}, {{"axis", int64_t{1}}});
  });
  check("tile", {Open{{2, 3}, "nm"}}, [](NetBuilder& b, const Inputs& x) { return b.add1("Tile", "y", {x[0], ints(b, "r", {2, 1})}); });
  check("expand", {Open{{2, 1}, "n."}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("Expand", "y", {x[0], ints(b, "r", {3, 1, 4})});
  });
  check("squeeze", {Open{{2, 1, 3}, "n.m"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("Squeeze", "y", {x[0], ints(b, "a", {1})});
  });
  check("flatten", {Open{{2, 2, 3}, "nmk"}}, [](NetBuilder& b, const Inputs& x) { return b.add1("Flatten", "y", {x[0]}); });
  check("transpose", {Open{{2, 3, 2}, "nmk"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("Transpose", "y", {x[0]}, {{"perm", std::vector<int64_t>{1, 2, 0}}});
  });
  check("depth to space", {Open{{1, 8, 2, 3}, "n."}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("DepthToSpace", "y", {x[0]}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}});
  });
  check("reverse", {Open{{3, 2, 2}, "..n"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("ReverseSequence", "y", {x[0], ints(b, "l", {2, 3})});
  });
}

TEST(GradientsOfOpenShapes, OfWhatIndicesOrConditionsPick) {
  check("gather rows", {Open{{3, 2}, "nm"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("Gather", "y", {x[0], matrix_of_ints(b, "i", Shape{2, 2}, {0, -1, 2, 0})});
  });
  check("gather columns", {Open{{2, 3, 2}, "nmk"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("Gather", "y", {x[0], ints(b, "i", {0, -1, 0})}, {{"axis", int64_t{1}}});
  });
  check("gather tuples", {Open{{2, 3, 2}, ".nm"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("GatherND", "y", {x[0], matrix_of_ints(b, "i", Shape{2, 2, 1}, {0, -1, 2, 2})}, {{"batch_dims", int64_t{1}}});
  });
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    check(reduction, {Open{{3, 2}, "nm"}, Open{{2, 2}, ""}}, [&](NetBuilder& b, const Inputs& x) {
      return b.add1("ScatterElements", "y", {x[0], matrix_of_ints(b, "i", Shape{2, 2}, {0, -1, 0, 1}), x[1]}, {{"reduction", reduction}});
    });
    check(reduction, {Open{{3, 2}, "nm"}, Open{{3, 2}, ".m"}}, [&](NetBuilder& b, const Inputs& x) {
      return b.add1("ScatterND", "y", {x[0], matrix_of_ints(b, "i", Shape{3, 1}, {0, -1, 0}), x[1]}, {{"reduction", reduction}});
    });
  }
  check("largest", {Open{{3, 4}, "nm"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add("TopK", "y", {x[0], ints(b, "k", {2})}, 1)[0];
  });
  check("one hot", {Open{{2}, ""}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("OneHot", "y", {ints(b, "i", {0, -1, 7}), ints(b, "d", {3}), x[0]});
  });
  // With a constant condition, and with one that only a run knows.
  check("compress", {Open{{2, 3}, "n."}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("Compress", "y", {x[0], yes_or_no(b, "c", Shape{3}, {1, 0, 1})}, {{"axis", int64_t{1}}});
  });
  check("compress what is positive", {Open{{3, 4}, "nm"}}, [](NetBuilder& b, const Inputs& x) {
    const ValueId sums = b.add1("ReduceSum", "sums", {x[0], ints(b, "a", {1})}, {{"keepdims", int64_t{0}}});
    return b.add1("Compress", "y", {x[0], b.add1("Greater", "c", {sums, b.constant("zero", blob(Shape{}, {0}))})}, {{"axis", int64_t{0}}});
  });
}

TEST(GradientsOfOpenShapes, OfSumsAndProducts) {
  for (const char* reduction : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceProd", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"})
    check(reduction, {Open{{2, 3, 2}, "nmk"}}, [&](NetBuilder& b, const Inputs& x) {
      return b.add1(reduction, "y", {x[0], ints(b, "a", {1, -1})}, {{"keepdims", int64_t{0}}});
    });
  check("cumsum", {Open{{2, 3}, "nm"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("CumSum", "y", {x[0], ints(b, "a", {1})}, {{"exclusive", int64_t{1}}});
  });
  check("softmax", {Open{{2, 3}, "nm"}}, [](NetBuilder& b, const Inputs& x) { return b.add1("Softmax", "y", {x[0]}); });
  check("sum", {Open{{2, 3}, "nm"}, Open{{3}, "m"}, Open{{2, 1}, "n."}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("Sum", "y", {x[0], x[1], x[2]});
  });
  check("max", {Open{{2, 3}, "nm"}, Open{{3}, "m"}, Open{{2, 1}, "n."}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("Max", "y", {x[0], x[1], x[2]});
  });
  check("rows by a matrix", {Open{{2, 2, 3}, "nmk"}, Open{{3, 2}, "kl"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("MatMul", "y", {x[0], x[1]});
  });
  check("matrices", {Open{{2, 2, 3}, "nmk"}, Open{{1, 3, 2}, ".kl"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("MatMul", "y", {x[0], x[1]});
  });
  check("vectors", {Open{{3}, "k"}, Open{{2, 3, 2}, "nkl"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("MatMul", "y", {x[0], x[1]});
  });
  check("gemm", {Open{{3, 2}, "kn"}, Open{{2, 3}, "mk"}, Open{{2}, "m"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("Gemm", "y", {x[0], x[1], x[2]}, {{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5}, {"beta", 2.0}});
  });
  for (const char* equation : {"...ij,jk->...k", "ija,ab->b", "aii,ib->b", "aai,ib->ia"})
    check(equation, {Open{{3, 3, 3}, "..."}, Open{{3, 3}, ".n"}}, [&](NetBuilder& b, const Inputs& x) {
      return b.add1("Einsum", "y", {x[0], x[1]}, {{"equation", std::string(equation)}});
    });
}

TEST(GradientsOfOpenShapes, OfImages) {
  check("resize", {Open{{1, 2, 3, 4}, "nc"}}, [](NetBuilder& b, const Inputs& x) {
    const float scales[] = {1, 1, 2, 0.5};
    return b.add1("Resize", "y", {x[0], ValueId(), b.constant("s", Blob::copy_of(DType::f32, Shape{4}, scales))},
                  {{"mode", std::string("linear")}});
  });
  check("grid", {Open{{2, 2, 3, 4}, "n"}, Open{{2, 1, 3, 2}, "nkl"}}, [](NetBuilder& b, const Inputs& x) {
    return b.add1("GridSample", "y", {x[0], x[1]});
  });
  for (const std::string mode : {"avg", "max"})
    check(mode, {Open{{2, 2, 4, 5}, "nc"}}, [&](NetBuilder& b, const Inputs& x) {
      const ValueId rois = b.constant("rois", blob(Shape{2, 4}, {0, 0.5, 3, 3.25, 1, 1, 4, 2}));
      return b.add1("RoiAlign", "y", {x[0], rois, ints(b, "i", {1, 0})}, {{"output_height", int64_t{2}}, {"mode", mode}});
    });
}

// The gradient uses the mask that was drawn.
TEST(GradientsOfOpenShapes, OfDropout) {
  NetBuilder b("dropout");
  const ValueId x = b.input("x", DType::f64, Shape{64});
  const ValueId ratio = b.constant("ratio", blob(Shape{}, {0.25}));
  b.output(b.add("Dropout", "loss", {x, ratio, yes_or_no(b, "training", Shape{}, {1})}, 1)[0]);
  DifferentiateOptions options;
  options.losses = {"loss"};
  options.wanted = {"x"};
  options.outputs = true;
  const auto made = derived(b.finish(), options);
  ASSERT_TRUE(made.ok()) << made.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), Net(made->net));
  const Values all = outputs_of(session, {Shape{64}}, {std::vector<double>(64, 1.0)});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1], all[0]);  // because the inputs are ones
  EXPECT_GT(std::count(all[0].begin(), all[0].end(), 0.0), 0);
  EXPECT_GT(std::count(all[0].begin(), all[0].end(), 1 / 0.75), 0);
}

}  // namespace
}  // namespace heddle
