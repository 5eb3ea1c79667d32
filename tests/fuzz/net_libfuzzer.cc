// The same target under libFuzzer: guided by coverage. It starts from the seeds of material.h, so that no corpus is needed:
//   heddle_net_libfuzzer -max_total_time=600 -max_len=65536 -timeout=10 -rss_limit_mb=4096 -malloc_limit_mb=512
#include <cstdint>
#include <cstring>

#include "fuzz/material.h"
#include "fuzz/net_case.h"
#include "load/load.h"
#include "load/save.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace heddle;
using namespace heddle::fuzz;

const Material& material() {
  static const Material made = make_material(*cpu_registry());
  return made;
}

// Mutates a net that loads as a graph and writes it in the form that it had. Returns false if it does not load.
bool mutate_as_net(Bytes& file, Dice& dice) {
  LoadOptions options;
  options.limits = Target::limits();
  options.attach_weights = false;
  auto net = load_net_bytes(file, "", options);
  if (!net.ok()) return false;
  mutate_net(*net, material(), dice);
  if (file[0] == std::byte{'{'}) {
    const auto text = net_to_json(*net);
    if (!text.ok()) return false;
    const auto* first = reinterpret_cast<const std::byte*>(text->data());
    file.assign(first, first + text->size());
    return true;
  }
  auto bytes = net_to_bytes(*net);
  if (bytes.ok()) file = std::move(bytes).value();
  return bytes.ok();
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Dice dice(seed);
  const auto* first = reinterpret_cast<const std::byte*>(data);
  Bytes file(first, first + size);
  if (size < 4 || dice.one_in(50)) {
    file = make_case(material(), dice);
  } else if (!dice.one_in(4) && mutate_as_net(file, dice)) {
  } else if (file[0] == std::byte{'{'} && dice.one_in(2)) {
    mutate_text(file, material(), dice);
  } else if (dice.one_in(2)) {
    mutate_bytes(file, dice);
  } else {
    file.resize(max_size);
    file.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(file.data()), size, max_size));
  }
  repair_header(file);
  if (file.size() > max_size) return size;
  std::memcpy(data, file.data(), file.size());
  return file.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Target target(cpu_registry(), false);
  target.test(std::as_bytes(std::span(data, size)));
  return 0;
}
