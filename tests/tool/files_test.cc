// heddle model, import, inspect and convert.
#include "onnx_bytes.h"
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolModel, ListNamesRecipes) {
  Words names;
  const Json object = heddle_json({"model", "--list"});
  for (const Json& recipe : object["recipes"]) names.push_back(recipe["name"]);
  for (const char* name : {"lenet", "resnet50", "encoder"}) EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  EXPECT_EQ(heddle({"model", "lenet"}).status, 2) << "-o is missing";
}

TEST(ToolModel, WritesANetOfThisBatchAndSeed) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& file, Words more) {
    Words arguments = {"model", "lenet", "-o", (folder / file).string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json net = heddle_json(arguments)["net"];
    EXPECT_EQ(net["parameters"], 61706);
    return read_text((folder / file).string().substr(0, (folder / file).string().size() - 7) + ".safetensors");
  };
  const std::string weights = write("a.heddle", {});
  EXPECT_EQ(weights, write("b.heddle", {"--batch", "3"}));
  EXPECT_NE(weights, write("c.heddle", {"--seed", "2"}));
  EXPECT_EQ(heddle_json({"run", (folder / "b.heddle").string(), "--random", "1"})["outputs"]["logits"]["shape"], Json({3, 10}));
  ASSERT_EQ(heddle({"model", "lenet", "-o", (folder / "d.heddle").string(), "--weights", (folder / "w.safetensors").string()}).status, 0);
  EXPECT_EQ(heddle_json({"inspect", (folder / "w.safetensors").string()})["tensors"].size(), 10u);
}

// Their indices are random and within bounds, whatever the tables' heights.
TEST(ToolModel, RecipesOfSeveralInputsRunOnRandomContent) {
  const std::pair<const char*, Json> recipes[] = {{"dlrm", {3, 1}}, {"gru_seq2seq", {3, 24, 8000}}};
  for (const auto& [name, shape] : recipes) {
    const TemporaryFolder folder;
    const std::string net = (folder / "net.heddle").string();
    ASSERT_EQ(heddle({"model", name, "-o", net, "--batch", "3"}).status, 0);
    const Json object = heddle_json({"run", net, "--random", "1"});
    EXPECT_EQ(object["outputs"]["logits"]["shape"], shape) << name;
    EXPECT_EQ(object["devices"]["cpu"]["planned_peak_bytes"], object["devices"]["cpu"]["measured_peak_bytes"]) << name;
  }
}

// Dims that a net does not declare are inferred: numbers, the inputs' symbols, or "?" where only a run knows.
TEST(ToolInspect, OutputsHaveDims) {
  const auto outputs = [](const NetFolder& folder, const Words& more = {}) {
    Words arguments = {"inspect", folder.net()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Json object = heddle_json(arguments);
    EXPECT_TRUE(object["diagnostics"].empty()) << object["diagnostics"];
    return object["nets"][0]["outputs"];
  };
  const auto port = [](const char* name, const Json& shape, const char* dtype = "f32") {
    return Json{{"name", name}, {"dtype", dtype}, {"shape", shape}};
  };
  const NetFolder flat(net_text("flat", R"("x", "z")", R"("y", "size", "all", "where")",
                                input("x", R"("N", "M", 3)") + ", " + input("z", "null, 3"),
                                node("Relu", R"("x")", "y") + ", " + node("Shape", R"("x")", "size") + ", " +
                                    node("Flatten", R"("x")", "all") + ", " + node("NonZero", R"("z")", "where")));
  EXPECT_EQ(outputs(flat), Json::array({port("y", {"N", "M", 3}), port("size", Json::array({3}), "i64"), port("all", {"N", nullptr}),
                                        port("where", Json::array({2, nullptr}), "i64")}));
  EXPECT_NE(heddle({"inspect", flat.net()}).out.find("  output \"all\" f32[N, ?]\n"), std::string::npos)
      << heddle({"inspect", flat.net()}).out;
  const NetFolder open(net_text("open", R"("z")", R"("y")", input("z", "null, 3"), node("Relu", R"("z")", "y")));
  EXPECT_EQ(outputs(open), Json::array({port("y", Json::array({nullptr, 3}))}));
  // An operator of no plugin is a note, and the net is shown as it is written.
  const NetFolder unknown(net_text("unknown", R"("x")", R"("y")", input("x", "3"), node("Relo", R"("x")", "y")));
  const Json object = heddle_json({"inspect", unknown.net()});
  EXPECT_EQ(codes(object), Words{"unknown-operator"});
  EXPECT_EQ(object["diagnostics"][0]["severity"], "note");
  EXPECT_EQ(object["nets"][0]["outputs"], Json::array({Json{{"name", "y"}, {"dtype", nullptr}, {"shape", nullptr}}}));
}

TEST(ToolInspect, FlopsTakeTheShapesThatAreGiven) {
  const NetFolder folder(net_text("open", R"("x")", R"("y")", input("x", R"("N", "N")"), node("MatMul", R"("x", "x")", "y")));
  const auto flops = [&](const Words& more) {
    Words arguments = {"inspect", folder.net(), "--stats"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return heddle_json(arguments)["stats"]["flops"];
  };
  EXPECT_TRUE(flops({}).is_null());
  EXPECT_EQ(flops({"--symbol", "N=4"}), 2 * 4 * 4 * 4);
  EXPECT_EQ(flops({"--shape", "x=5x5"}), 2 * 5 * 5 * 5);
}

TEST(ToolImport, WritesNetAndWeights) {
  if (!std::filesystem::exists(onnx_data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const TemporaryFolder folder;
  const std::string model = (onnx_data / "pytorch-converted/test_Conv2d/model.onnx").string(), net = (folder / "n.heddle").string();
  const Json object = heddle_json({"import", model, "-o", net});
  EXPECT_EQ(object["net"]["file"], net);
  EXPECT_GT(object["net"]["operators"].get<int>(), 0);
  EXPECT_EQ(heddle({"check", net}).status, 0);
  EXPECT_EQ(heddle({"import", model}).status, 2) << "-o is missing";
  write_text(folder / "bad.onnx", "no model");
  EXPECT_EQ(heddle({"import", (folder / "bad.onnx").string(), "-o", net}).status, 3);
}

TEST(ToolImport, HelpNamesTheOpsetsThatAreRead) {
  EXPECT_NE(heddle({"import", "--help"}).out.find("an ONNX model of opset 1 to 28"), std::string::npos);
}

TEST(ToolImport, ListsEveryUnsupportedOperator) {
  if (!std::filesystem::exists(onnx_data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const TemporaryFolder folder;
  // Without the CPU plugin no plugin has the operators of the model.
  const Outcome outcome =
      Tool({"import", (onnx_data / "pytorch-converted/test_Conv2d/model.onnx").string(), "-o", (folder / "n.heddle").string(), "--json"})
          .set("HEDDLE_PLUGIN_DIR", folder.path().string())
          .run();
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(codes(checked_object(outcome, "import.json")), Words{"unknown-operator"});
  EXPECT_FALSE(std::filesystem::exists(folder / "n.heddle"));
}

TEST(ToolImport, CountsAllParametersWhateverTheyAreCalled) {
  namespace onnx = onnx_bytes;
  const TemporaryFolder folder;
  // The net has a convolution of 3 → 8 channels with bias and a normalisation: 8·3·3·3 + 8 + 2·8; the running statistics, a scalar and a
  // resizing's factors are no parameters.
  const auto floats = [](const std::string& name, const onnx::Dims& dims) {
    size_t count = 1;
    for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
    return onnx::tensor(name, dims, std::vector<float>(count, 1.0f));
  };
  const onnx::Graph graph = onnx::Graph()
                                .input(onnx::value("x", {1, 3, 8, 8}))
                                .constant(floats("resnetv17_conv0_weight", {8, 3, 3, 3}))
                                .constant(floats("bias", {8}))
                                .constant(floats("gamma", {8}))
                                .constant(floats("beta", {8}))
                                .constant(floats("bn_running_mean", {8}))
                                .constant(floats("241", {8}))
                                .constant(floats("scale", {}))
                                .constant(floats("factors", {4}))
                                .node(onnx::node("Conv", {"x", "resnetv17_conv0_weight", "bias"}, {"c"}))
                                .node(onnx::node("BatchNormalization", {"c", "gamma", "beta", "bn_running_mean", "241"}, {"n"}))
                                .node(onnx::node("Mul", {"n", "scale"}, {"m"}))
                                .node(onnx::node("Resize", {"m", "", "factors"}, {"y"}))
                                .output(onnx::value("y", {1, 8, 6, 6}));
  write_text(folder / "m.onnx", graph.model());
  const Words arguments = {"import", (folder / "m.onnx").string(), "-o", (folder / "m.heddle").string()};
  EXPECT_EQ(heddle_json(arguments)["net"]["parameters"], 8 * 3 * 3 * 3 + 8 + 2 * 8);
  EXPECT_NE(heddle(arguments).out.find(" 240 parameters\n"), std::string::npos);
  EXPECT_EQ(heddle_json({"inspect", (folder / "m.heddle").string(), "--stats"})["stats"]["parameters"], 240);
  if (!std::filesystem::exists(onnx_data)) return;
  // This is PyTorch's Conv2d(3, 4, kernel_size=(3, 2)).
  const std::string conv = (onnx_data / "pytorch-converted/test_Conv2d/model.onnx").string();
  EXPECT_EQ(heddle_json({"import", conv, "-o", (folder / "c.heddle").string()})["net"]["parameters"], 4 * 3 * 3 * 2 + 4);
}

TEST(ToolInspect, DescribesNetsWeightsAndPlugins) {
  const TemporaryFolder folder;
  const std::string net = (folder / "n.heddle").string(), weights = (folder / "n.safetensors").string();
  ASSERT_EQ(heddle({"model", "lenet", "-o", net}).status, 0);
  const Json of_net = heddle_json({"inspect", net});
  EXPECT_EQ(of_net["net"]["operators"], 12);
  EXPECT_TRUE(of_net["stats"].is_null());
  EXPECT_EQ(heddle_json({"inspect", net, "--stats"})["stats"]["operators_by_type"]["Conv"], 2);
  EXPECT_EQ(heddle_json({"inspect", net, "--stats"})["stats"]["parameters"], 61706);
  // There are 28 x 28 outputs of 5 x 5 taps in 6 channels, 10 x 10 of 6 x 5 x 5 in 16, three products: multiplications and additions,
  // biases apart.
  const double products = 2.0 * (28 * 28 * 6 * 25 + 10 * 10 * 16 * 150 + 400 * 120 + 120 * 84 + 84 * 10);
  const Json stats = heddle_json({"inspect", net, "--stats"})["stats"];
  EXPECT_GT(stats["flops"], products);
  EXPECT_LT(stats["flops"], products * 1.1);
  EXPECT_EQ(stats["operators_without_flops"], 1) << "Flatten";
  const std::string dot = heddle({"inspect", net, "--dot"}).out;
  EXPECT_EQ(dot.rfind("digraph \"lenet\" {", 0), 0u) << dot.substr(0, 100);
  EXPECT_EQ(heddle_json({"inspect", net, "--dot"})["dot"].get<std::string>() + "\n", dot);
  const Json of_weights = heddle_json({"inspect", weights});
  ASSERT_FALSE(of_weights["tensors"].empty());
  EXPECT_EQ(of_weights["tensors"][0]["dtype"], "F32");
  EXPECT_TRUE(of_weights["tensors"][0]["xxh64"].is_null());
  EXPECT_TRUE(heddle_json({"inspect", weights, "--verify"})["tensors"][0]["xxh64"].is_string());
  EXPECT_EQ(heddle_json({"inspect", example_plugin})["plugin"]["operators"][0]["name"], "example::Scale");
}

TEST(ToolInspect, TellsWhatOperatorsOfAPluginTake) {
  const Json scale = heddle_json({"inspect", test_plugin("no_exceptions"), "--operator", "Scale"})["plugin"]["operators"];
  ASSERT_EQ(scale.size(), 1u);
  EXPECT_EQ(scale[0]["inputs"][0]["dtypes"], Json::array({"f16", "bf16", "f32", "f64"}));
  EXPECT_EQ(scale[0]["outputs"][0]["in_place"], "x");
  EXPECT_EQ(scale[0]["attributes"][0], Json({{"name", "factor"}, {"type", "float"}, {"required", false}, {"default", 1.0}}));
  EXPECT_EQ(scale[0]["gradient"]["operators"][0], Json({{"operator", "no_exceptions::Scale"}, {"inputs", {"dy"}}, {"outputs", {"dx"}}}));
  EXPECT_EQ(scale[0]["examples"][0]["source"], "by hand");
  const std::string said = heddle({"inspect", test_plugin("no_exceptions"), "--operator", "no_exceptions::Scale"}).out;
  for (const char* line :
       {"  no_exceptions::Scale 1\n", "    input     x: f16 bf16 f32 f64 (T)\n", "    output    y: f16 bf16 f32 f64 (T), in place of x\n",
        "    attribute factor: float = 1.0\n", "    gradient  dx = no_exceptions::Scale(dy)\n",
        "    example   f32[4] = 1 -2 0.5 0; factor=-4 -> f32[4] = -4 8 -2 0 (by hand)\n"})
    EXPECT_NE(said.find(line), std::string::npos) << line << "is not in\n" << said;
  EXPECT_EQ(said.find("Dot"), std::string::npos) << said;
  const std::string product = heddle({"inspect", test_plugin("dims"), "--operator", "Product"}).out;
  EXPECT_NE(product.find("    input     a: any dtype (T) [... M K]\n"), std::string::npos) << product;
  const Json loop = heddle_json({"inspect", cpu_plugin, "--operator", "Loop"})["plugin"]["operators"][0];
  EXPECT_EQ(loop["inputs"][0]["shape_operand"], true);
  EXPECT_EQ(loop["attributes"][0], Json({{"name", "body"}, {"type", "subnet"}, {"required", true}, {"default", nullptr}}));
  EXPECT_TRUE(loop["gradient"].is_null());
  EXPECT_EQ(codes(heddle_json({"inspect", cpu_plugin, "--operator", "Lop"}, 2)), Words{"unknown-name"});
}

// The plugin alone would be refused: no plugin would declare the operators of its kernels.
TEST(ToolInspect, ShowsKernelsForOperatorsOfOthers) {
  const Json plugin = heddle_json({"inspect", test_plugin("bare")})["plugin"];
  EXPECT_EQ(plugin["devices"], Json::array({"bare"}));
  std::map<std::string, Json> kernels;
  for (const Json& kernel : plugin["kernels"]) kernels[kernel["name"]] = kernel;
  EXPECT_EQ(kernels["bare:relu"], Json({{"name", "bare:relu"},
                                        {"operator", "Relu"},
                                        {"device", "bare"},
                                        {"version", 14},
                                        {"types", Json::array({Json::array({"f32"})})}}));
  EXPECT_EQ(kernels["bare:uniform"]["types"][0].size(), 13u) << "as the operator says";
  EXPECT_EQ(kernels["bare:shift"]["operator"], "bare::Shift");
  const std::string said = heddle({"inspect", test_plugin("bare")}).out;
  for (const char* line : {", devices bare\n", "  Relu 14, an operator of \"cpu\"\n    kernel    bare:relu on bare, X: f32\n",
                           "    kernel    bare:accumulate on bare, variable: f32, value: f32, apply: bool\n    kernel    bare:count on "
                           "bare, variable: i64, value: i64, apply: bool\n",
                           "    gradient  none\n", "    kernel    bare:shift on bare, x: f32, k: f32, table: f32\n"})
    EXPECT_NE(said.find(line), std::string::npos) << line << "is not in\n" << said;
  const Json relu = heddle_json({"inspect", test_plugin("bare"), "--operator", "Relu"})["plugin"];
  EXPECT_EQ(relu["kernels"], Json::array({kernels["bare:relu"]}));
  EXPECT_TRUE(relu["operators"].empty());
  EXPECT_EQ(codes(heddle_json({"inspect", test_plugin("bare"), "--operator", "Sigmoid"}, 2)), Words{"unknown-name"});
  // Without the plugins that declare the operators it is refused.
  const TemporaryFolder empty;
  const Outcome refused = Tool({"inspect", test_plugin("bare")}).set("HEDDLE_PLUGIN_DIR", empty.path().string()).run();
  EXPECT_EQ(refused.status, 3);
  EXPECT_NE(refused.err.find("an operator nobody declares"), std::string::npos) << refused.err;
}

#ifdef HEDDLE_WITH_CUDA
TEST(ToolInspect, ShowsAnotherBuildOfAPluginThatIsLoadedByDefault) {
  const TemporaryFolder folder;
  const std::filesystem::path copy = folder / "mine.so";
  const std::string bundled = HEDDLE_BINARY_DIR "/lib/cuda.so";
  std::filesystem::copy_file(bundled, copy);
  const Json plugin = heddle_json({"inspect", copy.string()})["plugin"];
  EXPECT_EQ(plugin, heddle_json({"inspect", bundled})["plugin"]);
  EXPECT_EQ(plugin["devices"], Json::array({"cuda"}));
  EXPECT_GT(plugin["kernels"].size(), 50u);
}
#endif

TEST(ToolInspect, VerifyFindsDamage) {
  const TemporaryFolder folder;
  const std::string net = (folder / "n.heddle").string(), weights = (folder / "n.safetensors").string();
  ASSERT_EQ(heddle({"model", "lenet", "-o", net}).status, 0);
  EXPECT_EQ(heddle({"inspect", net, "--verify"}).status, 0);
  std::string bytes = read_text(weights);
  bytes[bytes.size() - 3] = static_cast<char>(bytes[bytes.size() - 3] ^ 1);
  write_text(weights, bytes);
  EXPECT_EQ(heddle({"inspect", net}).status, 0);
  EXPECT_EQ(codes(heddle_json({"inspect", net, "--verify"}, 3)), Words{"weights-mismatch"});
}

TEST(ToolConvert, GoesBothWaysWithoutLoss) {
  const NetFolder folder(two_outputs());
  ASSERT_EQ(heddle_json({"convert", folder.net(), folder.file("a.heddle")})["net"]["operators"], 2);
  ASSERT_EQ(heddle({"convert", folder.file("a.heddle"), folder.file("b.json")}).status, 0);
  ASSERT_EQ(heddle({"convert", folder.file("b.json"), folder.file("c.heddle")}).status, 0);
  EXPECT_EQ(read_text(folder / "a.heddle"), read_text(folder / "c.heddle"));
  EXPECT_EQ(heddle_json({"run", folder.net(), "--random", "1"})["outputs"],
            heddle_json({"run", folder.file("c.heddle"), "--random", "1"})["outputs"]);
}

}  // namespace
}  // namespace heddle::tool_tests
