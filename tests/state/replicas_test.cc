// Replicas of variables: they begin as the variable does that they are replicas of, have what is written to it, and files do not know them.
#include <filesystem>
#include <string>
#include <vector>

#include "heddle/training.h"
#include "load/temporary_folder.h"
#include "small_nets.h"

namespace heddle {
namespace {

using testing_nets::blob;

// w and its replica are read and updated; v has an initializer, and a replica too.
Net replicated_net() {
  NetBuilder b("replicas");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 1), true), v = b.variable("v", DType::f32, Shape{2}, "uniform(0, 1)");
  const auto replica = [&](ValueId of, const char* name) {
    Variable copy = b.net()[b.net()[of].variable];
    copy.replica_of = copy.name;
    copy.name = name;
    copy.initial = {};
    copy.initializer.clear();
    return add_variable(b.net(), std::move(copy));
  };
  const ValueId w1 = replica(w, "w@1"), v1 = replica(v, "v@1");
  b.output(b.add1("Add", "first", {w, v}));
  b.output(b.add1("Add", "second", {w1, v1}));
  const ValueId x = b.input("x", DType::f32, Shape{2});
  b.updates(b.add1("Assign", "new_w", {w, x}, {}, "heddle"), w);
  b.updates(b.add1("Assign", "new_w1", {w1, x}, {}, "heddle"), w1);
  return b.finish();
}

std::vector<float> values_of(const Session& session, const std::string& name) {
  const auto read = session.read_variable(name);
  EXPECT_TRUE(read.ok()) << read.status().text();
  const auto* const data = static_cast<const float*>(read->data());
  return {data, data + read->shape().element_count()};
}

void expect_alike(const Session& session) {
  EXPECT_EQ(values_of(session, "w"), values_of(session, "w@1"));
  EXPECT_EQ(values_of(session, "v"), values_of(session, "v@1"));
}

void write(Session& session, const std::string& name, std::vector<float> values) {
  const Status status = session.write_variable(name, testing_nets::view(values.data(), DType::f32, Shape{2}));
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Replicas, BeginAsTheVariableDoes) {
  Session session = testing_nets::open(testing_nets::runtime(), replicated_net());
  EXPECT_EQ(session.variables(), (std::vector<std::string>{"w", "v"}));
  expect_alike(session);
  EXPECT_EQ(values_of(session, "w@1"), (std::vector<float>{1, 2}));
}

TEST(Replicas, HaveWhatIsWrittenToTheVariable) {
  Session session = testing_nets::open(testing_nets::runtime(), replicated_net());
  write(session, "w", {5, 6});
  EXPECT_EQ(values_of(session, "w@1"), (std::vector<float>{5, 6}));
  const std::vector<float> before = values_of(session, "v");
  EXPECT_TRUE(session.initialize(77, true).ok());
  EXPECT_NE(values_of(session, "v"), before);
  expect_alike(session);
  const float x[] = {0, 0};
  const Status refused = session.write_variable("w@1", testing_nets::view(x, DType::f32, Shape{2}));
  EXPECT_NE(refused.text().find("variable \"w@1\" is a replica"), std::string::npos) << refused.text();
}

TEST(Replicas, AreInNoFileOfVariablesAndLoadedFromIt) {
  const testing::TemporaryFolder folder;
  const std::string file = (folder.path() / "variables.safetensors").string();
  Session session = testing_nets::open(testing_nets::runtime(), replicated_net());
  write(session, "w", {7, 8});
  ASSERT_TRUE(session.save_variables(file).ok());
  Session other = testing_nets::open(testing_nets::runtime(), replicated_net());
  const Status loaded = other.load_variables(file);
  ASSERT_TRUE(loaded.ok()) << loaded.text();
  EXPECT_EQ(values_of(other, "w@1"), (std::vector<float>{7, 8}));
  expect_alike(other);
}

TEST(Replicas, AreInNetsThatAreWrittenAndRead) {
  const testing::TemporaryFolder folder;
  std::vector<Net> all;
  all.push_back(replicated_net());
  auto nets = Nets::of(std::move(all));
  ASSERT_TRUE(nets.ok()) << nets.status().text();
  Session session = testing_nets::open(testing_nets::runtime(), replicated_net());
  write(session, "w", {3, 4});
  const Status taken = nets->take_variables(session);
  ASSERT_TRUE(taken.ok()) << taken.text();
  for (const char* const name : {"net.json", "net.heddle"}) {
    SCOPED_TRACE(name);
    const std::string file = (folder.path() / name).string();
    const Status written = nets->write(file);
    ASSERT_TRUE(written.ok()) << written.text();
    const auto read = Nets::read(file);
    ASSERT_TRUE(read.ok()) << read.status().text();
    auto opened = testing_nets::runtime().open(*read);
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    EXPECT_EQ(opened->variables(), (std::vector<std::string>{"w", "v"}));
    EXPECT_EQ(values_of(*opened, "w@1"), (std::vector<float>{3, 4}));
    expect_alike(*opened);
  }
}

std::string refusal(const std::function<void(Net&)>& change) {
  Net net = replicated_net();
  change(net);
  std::vector<Net> all;
  all.push_back(std::move(net));
  const auto nets = Nets::of(std::move(all));
  return nets.ok() ? "" : nets.status().text();
}

// Another net of the session that updates the variable alone would leave its replica as it is.
TEST(Replicas, ThatANetDoesNotUpdateAreNamed) {
  NetBuilder b("alone");
  const ValueId w = b.variable("w", blob(Shape{2}, 1, 1), true);
  b.updates(b.add1("Assign", "new_w", {w, b.input("x", DType::f32, Shape{2})}, {}, "heddle"), w);
  std::vector<Net> both;
  both.push_back(replicated_net());
  both.push_back(b.finish());
  const auto nets = Nets::of(std::move(both));
  ASSERT_TRUE(nets.ok()) << nets.status().text();
  const auto session = testing_nets::runtime().open(*nets);
  EXPECT_EQ(session.status().code(), Code::hazard);
  EXPECT_NE(session.status().text().find("net \"alone\" updates variable \"w\", and not \"w@1\", its replica in net \"replicas\""),
            std::string::npos)
      << session.status().text();
}

TEST(Replicas, ThatContradictAreRefused) {
  const auto replica = [](Net& net) -> Variable& { return net.variables[2]; };
  EXPECT_NE(refusal([&](Net& net) { replica(net).replica_of = "u"; }).find("\"w@1\" is a replica of \"u\", which does not exist"),
            std::string::npos);
  EXPECT_NE(refusal([&](Net& net) { replica(net).replica_of = "v@1"; }).find("which is a replica itself"), std::string::npos);
  EXPECT_NE(refusal([&](Net& net) { replica(net).initializer = "constant(0)"; }).find("has content of its own"), std::string::npos);
  EXPECT_NE(refusal([&](Net& net) {
              net.variables[0].type = DeclaredType::of(DType::f32, Shape{2, 1});
              net[net.variables[0].first].type = net[net.variables[0].last].type = net.variables[0].type;
              net.variables[0].initial.blob = blob(Shape{2, 1}, 0, 0);
            }).find("which has another type"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle
