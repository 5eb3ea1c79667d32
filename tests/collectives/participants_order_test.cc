// The devices of a session are numbered as participants in the order in which it declares them, whatever the order in the net.
#include "collectives/participants.h"

namespace heddle {
namespace {

using namespace testing_collectives;

TEST(ParticipantsOrder, IsThatOfTheDeclaration) {
  std::vector<std::string> kinds = {"sim"};
  if (has_cuda()) kinds.insert(kinds.end(), {"cuda", "nccl"});
  for (const std::string& kind : kinds) {
    SCOPED_TRACE(kind);
    const Crew crew{3, true, kind};
    for (const std::vector<int>& declared : {std::vector<int>{0, 1, 2}, {2, 0, 1}, {1, 2, 0}}) {
      NetBuilder b("order");
      for (const int d : {1, 0, 2}) {
        const std::string suffix = std::to_string(d);
        const ValueId x = b.input("x" + suffix, DType::i32, {1});
        b.output(b.add1("AllGather", "all" + suffix, {x}, {{"communicator", world}, {"size", int64_t{3}}}, "heddle"));
        b.output(b.add1("Broadcast", "first" + suffix, {x}, {{"communicator", world}, {"root", int64_t{0}}}, "heddle"));
        for (Node& node : b.net().nodes)
          if (node.device.empty()) node.device = crew.device(d);
      }
      SessionOptions options = options_of(crew, "");
      options.communicators[0].devices.clear();
      for (const int d : declared) options.communicators[0].devices.push_back(crew.device(d));
      auto session = runtime_with_devices(1, kind).open(b.finish(), options);
      ASSERT_TRUE(session.ok()) << session.status().text();
      int32_t values[] = {1, 0, 2};  // of the inputs in their order: the number of the device
      const auto outputs = session->run({{DType::i32, {1}, &values[0]}, {DType::i32, {1}, &values[1]}, {DType::i32, {1}, &values[2]}});
      ASSERT_TRUE(outputs.ok()) << outputs.status().text();
      for (size_t i = 0; i < outputs->size(); i += 2) {
        EXPECT_EQ(copy_of((*outputs)[i]).as<int32_t>(), (std::vector<int32_t>{declared[0], declared[1], declared[2]}));
        EXPECT_EQ(copy_of((*outputs)[i + 1]).as<int32_t>(), std::vector<int32_t>{declared[0]});
      }
      EXPECT_EQ(crew.on_cuda() ? broken_rules() : "", "");
    }
  }
}

}  // namespace
}  // namespace heddle
