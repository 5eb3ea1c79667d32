// libFuzzer target of load: any bytes give a net or an error, and what loads can be written and read again.
//
// The mutator repairs length and checksum of the header, else nothing would get past them; it starts from the sample net of
// tests/load in both forms, so that no corpus is needed:   heddle_load_fuzz -max_total_time=600 -max_len=16384
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "load/header.h"
#include "load/load.h"
#include "load/sample_net.h"
#include "load/save.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace heddle;

[[noreturn]] void wrong(const char* what, const Status& status) {
  std::fprintf(stderr, "%s: %s\n", what, status.text().c_str());
  std::abort();
}

void check_round_trip(const Net& net, const LoadOptions& options) {
  const auto bytes = net_to_bytes(net, options.limits);
  if (!bytes.ok()) wrong("a net that was loaded can't be written", bytes.status());
  const auto text = net_to_json(net, options.limits);
  if (!text.ok()) wrong("a net that was loaded can't be written as text", text.status());
  const auto reread = load_net_bytes(std::as_bytes(std::span(text->data(), text->size())), "", options);
  if (!reread.ok()) wrong("the text does not load", reread.status());
  if (*net_to_bytes(*reread, options.limits) != *bytes) wrong("text and binary differ", Status());
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  if (size < net_header_bytes) {
    const Net net = testing::sample_net();
    const std::vector<std::byte> bytes = *net_to_bytes(net);
    const std::string text = *net_to_json(net);
    const void* source = seed % 4 == 0 ? static_cast<const void*>(text.data()) : bytes.data();
    size = seed % 4 == 0 ? text.size() : bytes.size();
    if (size > max_size) return 0;
    std::memcpy(data, source, size);
  }
  const auto file = std::as_writable_bytes(std::span(data, size));
  if (!has_net_magic(file)) return LLVMFuzzerMutate(data, size, max_size);
  const size_t payload = LLVMFuzzerMutate(data + net_header_bytes, size - net_header_bytes, max_size - net_header_bytes);
  const auto header = net_header(std::as_bytes(std::span(data + net_header_bytes, payload)));
  std::memcpy(data, header.data(), header.size());
  return net_header_bytes + payload;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  LoadOptions options;
  options.attach_weights = false;
  const auto net = load_net_bytes(std::as_bytes(std::span(data, size)), "", options);
  if (net.ok()) check_round_trip(*net, options);
  return 0;
}
