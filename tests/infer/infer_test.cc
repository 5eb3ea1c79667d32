// infer: the types of all values, and the errors about nets and shapes that do not fit.
#include "infer/infer.h"

#include "stages.h"

namespace heddle {
namespace {

using namespace testing_nets;
using namespace testing_stages;

DeclaredType f32(std::vector<Dim> dims) {
  return {DType::f32, true, std::move(dims)};
}

// y = x + w, where x is [N, 2] and w [N, M].
Net symbolic() {
  NetBuilder b("symbolic");
  const ValueId x = b.input("x", f32({Dim::named("N"), Dim::of(2)})), w = b.input("w", f32({Dim::named("N"), Dim::named("M")}));
  b.output(b.add1("Add", "y", {x, w}));
  return b.finish();
}
Stages given(std::vector<TensorType> types, std::vector<std::pair<std::string, int64_t>> symbols = {}) {
  Stages stages;
  for (TensorType& type : types) stages.infer.inputs.push_back({std::move(type), nullptr});
  stages.infer.symbols = std::move(symbols);
  return stages;
}

TEST(Infer, SymbolsAreBoundByShapes) {
  EXPECT_EQ(inferred(symbolic(), given({{DType::f32, {3, 2}}, {DType::f32, {3, 1}}})), R"net(symbolic(x: f32[3, 2], w: f32[3, 1]) -> (y)
y: f32[3, 2] = Add(x, w)
)net");
}

TEST(Infer, SymbolsAreBoundByName) {
  EXPECT_EQ(inferred(symbolic(), given({}, {{"N", 3}, {"M", 2}})), R"net(symbolic(x: f32[3, 2], w: f32[3, 2]) -> (y)
y: f32[3, 2] = Add(x, w)
)net");
}

// The order of the inputs does not matter.
TEST(Infer, ShapesThatAreGivenBindSymbolsOfOthers) {
  EXPECT_EQ(inferred(symbolic(), given({{}, {DType::f32, {3, 2}}})), R"net(symbolic(x: f32[3, 2], w: f32[3, 2]) -> (y)
y: f32[3, 2] = Add(x, w)
)net");
}

TEST(Infer, UnboundSymbolsAreNamedAllAtOnce) {
  EXPECT_EQ(
      inferred(symbolic()),
      R"net(error[unbound-symbol] "symbolic": symbol "N" of input "x" is not bound; bind it with SessionOptions::symbols["N"] or give the input's shape
error[unbound-symbol] "symbolic": symbol "N" of input "w" is not bound; bind it with SessionOptions::symbols["N"] or give the input's shape
error[unbound-symbol] "symbolic": symbol "M" of input "w" is not bound; bind it with SessionOptions::symbols["M"] or give the input's shape
)net");
}

TEST(Infer, OneSymbolHasOneExtent) {
  EXPECT_EQ(inferred(symbolic(), given({{DType::f32, {3, 2}}, {DType::f32, {4, 2}}})),
            R"net(error[shape-mismatch] "symbolic": input "w" has 4 for symbol "N", which is 3; give the inputs shapes that agree
error[shape-mismatch] "symbolic": "y" (Add): input 1 [4, 2] does not broadcast to [3, 2]
)net");
}

TEST(Infer, AnUnknownSymbolIsAnsweredWithTheNearest) {
  EXPECT_EQ(inferred(symbolic(), given({{DType::f32, {3, 2}}, {DType::f32, {3, 2}}}, {{"n", 3}})),
            R"net(error[unknown-name] "symbolic": the net has no symbol "n"; did you mean "N" or "M"?
)net");
  EXPECT_EQ(inferred(convolution_net(), given({}, {{"batch", 3}})),
            R"net(error[unknown-name] "convolution": the net has no symbol "batch"; its inputs have no symbolic extents
)net");
}

TEST(Infer, InputsThatAreNotWhatTheNetDeclares) {
  EXPECT_EQ(inferred(symbolic(), given({{DType::f64, {3, 2}}, {DType::f32, {3}}})),
            R"net(error[dtype-mismatch] "symbolic": input "x" is f64, the net declares f32; convert the feed
error[shape-mismatch] "symbolic": input "w" has shape [3], the net declares rank 2
error[dtype-mismatch] "symbolic": "y" (Add): input "B" is f32 but the inputs before it are f64; insert a Cast
)net");
  EXPECT_EQ(inferred(symbolic(), given({{DType::f32, {3, 5}}, {DType::f32, {3, 5}}})),
            R"net(error[shape-mismatch] "symbolic": input "x" has shape [3, 5], the net declares 2 along axis 1
)net");
}

TEST(Infer, AnInputBeyondItsBound) {
  NetBuilder b("bounded");
  b.output(b.add1("Neg", "y", {b.input("x", f32({Dim::at_most(4)}))}));
  EXPECT_EQ(inferred(b.net()), R"net(bounded(x: f32[4]) -> (y)
y: f32[4] = Neg(x)
)net");
  EXPECT_EQ(inferred(b.net(), given({{DType::f32, {3}}})), R"net(bounded(x: f32[3]) -> (y)
y: f32[3] = Neg(x)
)net");
  EXPECT_EQ(inferred(b.net(), given({{DType::f32, {5}}})),
            R"net(error[shape-mismatch] "bounded": input "x" has shape [5], the net declares 4 along axis 0
)net");
}

TEST(Infer, InputsWithoutDtypeShapeOrExtent) {
  NetBuilder b("open");
  const ValueId x = b.input("x", DeclaredType()), y = b.input("y", {DType::f32, false, {}}), z = b.input("z", f32({{}}));
  b.output(b.add1("Sum", "sum", {x, y, z}));
  EXPECT_EQ(inferred(b.net()), R"net(error[dtype-mismatch] "open": input "x" has no dtype; declare one, e.g. "dtype": "f32"
error[unbound-symbol] "open": the shape of input "y" is not known; give it with Session::prepare(inputs["y"].shape)
error[unbound-symbol] "open": an extent of input "z" is not known; give its shape with Session::prepare(inputs["z"].shape)
)net");
  EXPECT_EQ(inferred(b.net(), given({{DType::f32, {2}}, {DType::f32, {2}}, {DType::f32, {2}}})),
            R"net(open(x: f32[2], y: f32[2], z: f32[2]) -> (sum)
sum: f32[2] = Sum(x, y, z)
)net");
}

// Consequences of a mistake are not reported as further mistakes.
TEST(Infer, EveryMistakeIsToldOnce) {
  NetBuilder b("mistakes");
  const ValueId x = b.input("x", DType::f32, Shape{2}), wide = b.input("wide", DType::f32, Shape{3}),
                i = b.input("i", DType::i64, Shape{2});
  const ValueId wrong = b.add1("Add", "wrong", {x, wide});
  b.output(b.add1("Neg", "behind", {wrong}));
  b.output(b.add1("Add", "mixed", {x, i}));
  b.output(b.add1("MatMul", "product", {wide, x}));
  b.output(b.add1("Abs", "sound", {x}));
  EXPECT_EQ(inferred(b.finish()), R"net(error[shape-mismatch] "mistakes": "wrong" (Add): input 1 [3] does not broadcast to [2]
error[dtype-mismatch] "mistakes": "mixed" (Add): input "B" is i64 but the inputs before it are f32; insert a Cast
error[shape-mismatch] "mistakes": "product" (MatMul): A is [3] and B is [2]: expected as many columns of A (3) as rows of B (2)
)net");
}

TEST(Infer, DtypesThatAnOperatorDoesNotTake) {
  NetBuilder b("dtypes");
  b.output(b.add1("Sin", "y", {b.input("x", DType::boolean, Shape{2})}));
  EXPECT_EQ(inferred(b.finish()),
            R"net(error[dtype-mismatch] "dtypes": "y" (Sin): input "input" is bool, must be one of f16, bf16, f32, f64; insert a Cast
)net");
}

TEST(Infer, OutputsThatAreNotWhatTheNetDeclares) {
  NetBuilder b("declares");
  const ValueId x = b.input("x", DType::f32, Shape{2});
  const ValueId dtype = b.add1("Neg", "dtype", {x}), extent = b.add1("Abs", "extent", {x}), rank = b.add1("Exp", "rank", {x});
  const ValueId bound = b.add1("Sqrt", "bound", {x}), right = b.add1("Sin", "right", {x});
  b.net()[dtype].type = DeclaredType::of(DType::i64, Shape{2});
  b.net()[extent].type = f32({Dim::of(3)});
  b.net()[rank].type = f32({Dim::of(2), Dim::of(1)});
  b.net()[bound].type = f32({Dim::at_most(1)});
  b.net()[right].type = f32({Dim::named("anything")});
  for (const ValueId id : {dtype, extent, rank, bound, right}) b.output(id);
  EXPECT_EQ(inferred(b.finish()), R"net(error[dtype-mismatch] "declares": "dtype" (Neg): output "dtype" is f32, the net declares i64
error[shape-mismatch] "declares": "extent" (Abs): output "extent" has shape [2], the net declares another; mend the declaration or leave it out
error[shape-mismatch] "declares": "rank" (Exp): output "rank" has shape [2], the net declares another; mend the declaration or leave it out
error[shape-mismatch] "declares": "bound" (Sqrt): output "bound" has shape [2], the net declares another; mend the declaration or leave it out
)net");
}

TEST(Infer, OutputsBeyondTheLimitOfATensor) {
  NetBuilder b("big");
  b.output(b.add1("Expand", "y", {b.input("x", DType::f32, Shape{1}), b.constant_ints("shape", {1000})}));
  Stages limited;
  limited.infer.limits.tensor_bytes = 3999;
  EXPECT_EQ(
      inferred(b.finish(), limited),
      R"net(error[limit-exceeded] "big": "y" (Expand): output "y" would take 3.9 KiB, the limit tensor_bytes is 3.9 KiB; if you trust it, raise the limit with SessionOptions::limits.tensor_bytes
)net");
}

TEST(Infer, ContentThatDecidesExtentsIsFollowed) {
  NetBuilder b("followed");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3});
  const ValueId half = b.add1("Gather", "second", {b.add1("Shape", "extents", {x}), b.constant_ints("one", {1})});
  b.output(b.add1("Expand", "y", {b.add1("Reshape", "flat", {x, b.constant_ints("all", {-1, 1})}), half}));
  EXPECT_EQ(inferred(b.finish()), R"net(followed(x: f32[2, 3]) -> (y)
one: i64[1] = [1]
all: i64[2] = [-1, 1]
extents: i64[2] known [2, 3] = Shape(x)
second: i64[1] known [3] = Gather(extents, one)
flat: f32[6, 1] = Reshape(x, all)
y: f32[6, 3] = Expand(flat, second)
)net");
}

TEST(Infer, WithoutAnEvaluatorNothingIsFollowed) {
  NetBuilder b("unfollowed");
  const ValueId x = b.input("x", DType::f32, Shape{2, 3});
  b.output(b.add1("Reshape", "y", {x, b.add1("Shape", "extents", {x})}));
  Stages stages;
  stages.follow_content = false;
  EXPECT_EQ(inferred(b.finish(), stages), R"net(unfollowed(x: f32[2, 3]) -> (y)
extents: i64[2] = Shape(x)
y: f32[?, ?] = Reshape(x, extents)
)net");
}

TEST(Infer, ContentOfAnInputThatDecidesExtentsIsAskedFor) {
  NetBuilder b("shape");
  b.output(b.add1("Reshape", "y", {b.input("x", DType::f32, Shape{4}), b.input("shape", DType::i64, Shape{2})}));
  EXPECT_EQ(inferred(b.net()), R"net(shape(x: f32[4], shape: i64[2]) -> (y)
y: f32[?, ?] = Reshape(x, shape)
)net");
  Stages stages;
  const int64_t extents[] = {2, 2};
  stages.infer.inputs.resize(2);
  stages.infer.inputs[1] = {{DType::i64, Shape{2}}, Blob::copy_of(DType::i64, Shape{2}, extents)};
  EXPECT_EQ(inferred(b.net(), stages), R"net(shape(x: f32[4], shape: i64[2] known [2, 2]) -> (y)
y: f32[2, 2] = Reshape(x, shape)
)net");
  Stages varies;
  varies.infer.contents_vary = true;
  EXPECT_EQ(inferred(b.net(), varies), R"net(shape(x: f32[4], shape: i64[2]) -> (y)
y: f32[?, ?] = Reshape(x, shape)
)net");
}

TEST(Infer, ExtentsThatAContentDecidesAreBoundedAndWhatFollowsIsLate) {
  NetBuilder b("late");
  const ValueId found = b.add1("Unique", "found", {b.input("x", DType::f32, Shape{2, 3})});
  b.output(b.add1("Neg", "y", {found}));
  b.output(b.add1("ReduceSum", "z", {found}, {{"keepdims", int64_t{0}}}));
  EXPECT_EQ(inferred(b.finish()), R"net(late(x: f32[2, 3]) -> (y, z)
found: f32[<=6] = Unique(x)
y: f32[6] late = Neg(found)
z: f32[] = ReduceSum(found) keepdims=0
)net");
}

// A scan input of an unknown number of steps fits beside one of a known number, which alone determines the number that the run may have.
TEST(Infer, AScanOverStepsOfAKnownAndOfAnUnknownNumber) {
  NetBuilder body("body"), b("scan");
  const ValueId x = body.input("x", DeclaredType()), y = body.input("y", DeclaredType());
  body.output(body.add1("Mul", "product", {x, y}));
  const ValueId known = b.input("known", DType::f32, Shape{3, 2}), unknown = b.input("unknown", DeclaredType{DType::f32, false, {}});
  b.output(b.add1("Scan", "z", {known, unknown}, {{"body", subnet(body)}, {"num_scan_inputs", int64_t{2}}}));
  EXPECT_EQ(inferred(b.finish(), given({{DType::f32, {3, 2}}, {DType::f32, {-1, -1}, -1, true}})),
            R"net(scan(known: f32[3, 2], unknown: f32[?, ?]) -> (z)
z: f32[?, ?] = Scan(known, unknown) body={
  body(x, y) -> (product)
  product = Mul(x, y)
} num_scan_inputs=2
)net");
}

TEST(Infer, ExtentsWithoutABoundAreDynamic) {
  NetBuilder b("dynamic");
  b.output(b.add1("Neg", "y", {b.input("x", DType::f32, Shape{1})}));
  Stages stages;
  stages.infer.inputs.push_back({{DType::f32, Shape{-1}, -1, true}, nullptr});
  EXPECT_EQ(inferred(b.finish(), stages), R"net(dynamic(x: f32[?]) -> (y)
y: f32[?] = Neg(x)
)net");
}

TEST(Infer, VariablesHaveTheTypeOfTheirFirstContent) {
  NetBuilder b("variable");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 1));
  b.add1("AccumulateAdd", "next", {w, b.input("x", DType::f32, Shape{2})}, {}, "heddle");
  EXPECT_EQ(inferred(b.finish()), R"net(variable(x: f32[2]) -> ()
variable w: f32[2] = [1, 2] -> w@1
w@1: f32[2] = heddle::AccumulateAdd(w@0, x) # next
)net");
}

// ---------------------------------------------------------------- nets in nets

Net branches(ValueId (*inner)(NetBuilder&, ValueId), size_t captures = 1) {
  NetBuilder body("body"), b("branches");
  body.output(inner(body, body.input("x", DeclaredType())));
  const auto same = subnet(body);
  std::vector<ValueId> inputs = {yes(b)};
  for (size_t i = 0; i < captures; ++i) inputs.push_back(b.input("x" + std::to_string(i), DType::f32, Shape{2}));
  b.output(b.add1("If", "y", inputs, {{"then_branch", same}, {"else_branch", same}}));
  return b.finish();
}

TEST(Infer, ASubnetIsTypedForWhatItIsGiven) {
  EXPECT_EQ(inferred(branches([](NetBuilder& b, ValueId x) {
              return b.add1("Concat", "t", {x, x}, {{"axis", int64_t{0}}});
            })),
            R"net(branches(x0: f32[2]) -> (y)
yes: bool[] = [1]
y: f32[4] = If(yes, x0) then_branch={
  body(x) -> (t)
  t = Concat(x, x) axis=0
} else_branch={
  body(x) -> (t)
  t = Concat(x, x) axis=0
}
)net");
}

TEST(Infer, AMistakeInASubnetIsNamedFromOutside) {
  const auto wrong = [](NetBuilder& b, ValueId x) { return b.add1("Add", "t", {x, b.constant("three", blob(Shape{3}, 1, 1))}); };
  EXPECT_EQ(inferred(branches(wrong)),
            R"net(error[shape-mismatch] "branches": "y/t" (Add): input 1 [3] does not broadcast to [2], in subnet "body"
)net");
}

TEST(Infer, BranchesMustAgree) {
  NetBuilder floats("floats"), ints("ints"), b("branches");
  floats.output(floats.add1("Neg", "t", {floats.input("x", DeclaredType())}));
  ints.output(ints.add1("Cast", "t", {ints.input("x", DeclaredType())}, {{"to", int64_t{7}}}));
  b.output(b.add1("If", "y", {b.input("c", DType::boolean, Shape{}), b.input("x", DType::f32, Shape{2})},
                  {{"then_branch", subnet(floats)}, {"else_branch", subnet(ints)}}));
  EXPECT_EQ(inferred(b.finish()), R"net(error[shape-mismatch] "branches": "y" (If): output 0 differs in dtype between the branches
)net");
}

TEST(Infer, NamesTheSymbolsOfANet) {
  EXPECT_EQ(symbol_names(symbolic()), (std::vector<std::string>{"N", "M"}));
  EXPECT_TRUE(symbol_names(convolution_net()).empty());
}

}  // namespace
}  // namespace heddle
