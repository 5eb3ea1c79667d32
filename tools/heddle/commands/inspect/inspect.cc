#include <fmt/format.h>

#include <filesystem>

#include "base/text/text.h"
#include "commands/commands.h"
#include "commands/inspect/inspect_net.h"
#include "commands/inspect/inspect_plugin.h"
#include "load/load.h"
#include "options/net_choice.h"
#include "weights/safetensors.h"

namespace heddle::tool {
namespace {

struct InspectArguments {
  std::string file, only;
  bool verify = false, dot = false;
  NetChoice choice;
  NetQuestions net;
};

std::string net_dot(const Net& net) {
  std::string out = fmt::format("digraph {} {{\n  node [shape=box];\n", quoted(net.name.empty() ? "net" : net.name));
  for (size_t i = 0; i < net.nodes.size(); ++i)
    out += fmt::format("  n{} [label={}];\n", i, quoted(fmt::format("{} ({})", net.nodes[i].name, net.nodes[i].type)));
  for (size_t i = 0; i < net.nodes.size(); ++i)
    for (const ValueId id : net.nodes[i].inputs)
      if (id.valid() && net[id].producer.valid())
        out += fmt::format("  n{} -> n{} [label={}];\n", net[id].producer.index, i, quoted(net[id].name));
  return out + "}\n";
}

Status inspect_weights(const InspectArguments& o, Report& report) {
  const std::filesystem::path path(o.file);
  HEDDLE_TRY(const Limits limits, o.net.limits.limits());
  HEDDLE_TRY(const Safetensors tensors,
             Safetensors::open(path.parent_path().empty() ? "." : path.parent_path(), path.filename().string(), limits));
  Json list = Json::array();
  for (const TensorEntry& e : tensors.tensors()) {
    Json shape = Json::array();
    for (const int64_t d : e.shape) shape.push_back(d);
    Json row = {{"name", e.name}, {"dtype", e.file_dtype}, {"shape", shape}, {"bytes", e.bytes}, {"xxh64", nullptr}};
    std::string line = fmt::format("{} {}{} {}", quoted(e.name), word(e.file_dtype), e.shape.text(), human_bytes(e.bytes));
    if (o.verify) {
      HEDDLE_TRY(const uint64_t sum, tensors.checksum_of(e));
      if (e.checksum && *e.checksum != sum)
        return {Code::weights_mismatch,
                fmt::format("tensor {} of {} has the checksum {}, the file says {}", quoted(e.name), quoted(o.file), hex(sum),
                            hex(*e.checksum)),
                "the file is damaged: fetch or write it again"};
      row["xxh64"] = fmt::to_string(sum);
      line += fmt::format(" xxh64 {}", sum);
    }
    list.push_back(row);
    report.say(line);
  }
  report.json["tensors"] = list;
  if (!tensors.identity().known()) return {};
  report.json["identity"] = tensors.identity().text();
  report.say(fmt::format("identity {}", tensors.identity().text()));
  return {};
}

Status inspect(const InspectArguments& o, Report& report) {
  const std::string extension = std::filesystem::path(o.file).extension().string();
  if (extension == ".safetensors") return inspect_weights(o, report);
  if (extension == ".so") return inspect_plugin(o.file, o.only, report);
  LoadOptions load;
  load.verify_checksums = o.verify;
  HEDDLE_TRY(load.limits, o.net.limits.limits());
  if (o.dot) {
    HEDDLE_TRY(const Net net, o.choice.load(o.file, load));
    report.json["dot"] = net_dot(net);
    report.print(net_dot(net));
  } else {
    HEDDLE_TRY(const std::vector<Net> nets, o.choice.load_all(o.file, load));
    HEDDLE_CHECK(describe_nets(nets, o.net, report));
  }
  if (o.verify) report.say("checksums agree");
  return {};
}

Run declare_inspect(CLI::App& app) {
  auto o = std::make_shared<InspectArguments>();
  app.add_option("file", o->file, "a net, .safetensors file or plugin")->required()->type_name("FILE");
  o->choice.declare(app);
  app.add_flag("--stats", o->net.stats, "operators by type, parameters, bytes, flops");
  app.add_option("--shape", o->net.shapes, "shape of an input, for flops")->type_name("NAME=2x3x224x224")->needs("--stats");
  app.add_option("--symbol", o->net.symbols, "extent of a symbolic dimension, for flops")->type_name("N=8")->needs("--stats");
  app.add_flag("--verify", o->verify, "check every checksum");
  app.add_flag("--dot", o->dot, "Graphviz");
  app.add_option("--operator", o->only, "of a plugin: this operator alone")->type_name("NAME");
  o->net.limits.declare(app);
  return [o](Report& report) { return report.finish_with(inspect(*o, report)); };
}

}  // namespace

const Command inspect_command = {"inspect",
                                 "a net, weights or plugin, readable",
                                 "heddle inspect resnet50.heddle --stats",
                                 declare_inspect,
                                 {{"inspect", {"net", "nets", "stats", "tensors", "identity", "plugin", "dot"}}}};

}  // namespace heddle::tool
