#include <fmt/format.h>

#include <filesystem>

#include "base/text/text.h"
#include "commands/commands.h"
#include "commands/inspect/inspect_net.h"
#include "commands/inspect/inspect_plugin.h"
#include "heddle/checkpoint.h"
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

Json json_of(const CheckpointInfo& info) {
  Json means = Json::object();
  for (const auto& [name, value] : info.means) means[name] = number(value);
  return {{"file", info.path},       {"step", info.step},   {"loss", number(info.loss)}, {"means", means}, {"seed", info.seed},
          {"samples", info.samples}, {"batch", info.batch}, {"version", info.version},   {"net", info.net}};
}

std::string text_of(const CheckpointInfo& info) {
  std::string text = fmt::format("step {}: loss {:.4g}", info.step, info.loss);
  for (const auto& [name, value] : info.means) text += fmt::format(", test {} {:.4g}", printable(name), value);
  return text;
}

// Lists the checkpoints of a folder.
Status inspect_folder(const InspectArguments& o, Report& report) {
  HEDDLE_TRY(const CheckpointList list, list_checkpoints(o.file));
  report.json["checkpoints"] = Json::array();
  for (const CheckpointInfo& info : list.complete) {
    report.json["checkpoints"].push_back(json_of(info));
    report.say(fmt::format("{}, {}", text_of(info), quoted(info.path)));
  }
  for (Diagnostic damaged : list.damaged) {
    damaged.severity = Severity::warning;
    report.diagnose(damaged);
  }
  if (!list.complete.empty() || !list.damaged.empty()) return {};
  return {Code::file_unreadable, fmt::format("{} is a folder without checkpoints", quoted(o.file)), "name a file, or another folder"};
}

// Says what a checkpoint is of; nothing of other weights.
Status inspect_checkpoint(const InspectArguments& o, Report& report) {
  const Result<CheckpointInfo> info = read_checkpoint_info(o.file);
  if (info.status().code() == Code::invalid_argument) return {};
  HEDDLE_CHECK(info.status());
  report.json["checkpoints"] = Json::array({json_of(*info)});
  report.say(fmt::format("checkpoint of {}; seed {}, batch {} of {} samples, written by Heddle {}", text_of(*info), info->seed, info->batch,
                         info->samples, printable(info->version)));
  return {};
}

Status inspect_weights(const InspectArguments& o, Report& report) {
  const std::filesystem::path path(o.file);
  HEDDLE_TRY(const Limits limits, o.net.limits.limits());
  HEDDLE_TRY(const Safetensors tensors,
             Safetensors::open(path.parent_path().empty() ? "." : path.parent_path(), path.filename().string(), limits));
  HEDDLE_CHECK(inspect_checkpoint(o, report));
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
  std::error_code error;
  if (std::filesystem::is_directory(o.file, error)) return inspect_folder(o, report);
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
  app.add_option("file", o->file, "a net, .safetensors file or plugin, or a folder of checkpoints")->required()->type_name("FILE");
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
                                 {{"inspect", {"net", "nets", "stats", "tensors", "identity", "checkpoints", "plugin", "dot"}}}};

}  // namespace heddle::tool
