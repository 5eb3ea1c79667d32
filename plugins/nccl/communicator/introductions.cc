#include "communicator/introductions.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string_view>

namespace heddle::nccl {
namespace {

constexpr uint32_t max_devices = 64;  // of one process

// Their layouts are the same on all ranks, since the host has compared their versions before.
struct Introduction {
  int32_t version;
  uint32_t device_count;
  uint64_t devices[max_devices];  // a hash of machine and place of each
  uint32_t sums_of_library;
  char why[508];  // it can not come; empty: it can
};

// Rank 0 makes the id when it is known that all can come: NCCL listens for them with a thread and a port until they have.
struct Invitation {
  UniqueId id;
  char why[384];  // there is none; empty: there is
};

template <size_t size>
void write_text(const std::string& text, char (&to)[size]) {
  to[text.copy(to, size - 1)] = '\0';
}

Status read_device(const std::string& name, int32_t* device) {
  constexpr std::string_view kind = "cuda:";
  if (name.rfind(kind, 0) != 0) return plugin::invalid("\"" + name + "\" is no GPU, and NCCL connects GPUs");
  *device = std::atoi(name.c_str() + kind.size());
  return {};
}

// Returns a hash of the machine's boot and of the GPU's place on its bus: equal for one GPU, wherever the process runs.
Status identify(int32_t device, uint64_t* identity) {
  char place[32] = {};
  HEDDLE_NCCL_CUDA_CALL(cudaDeviceGetPCIBusId, place, static_cast<int32_t>(sizeof(place)), device);
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  *identity = std::hash<std::string>()(boot + '/' + place);
  return {};
}

Status describe(const OwnPart& mine, Introduction* introduction) {
  HEDDLE_PLUGIN_CHECK(mine.status);
  introduction->version = Library::get().version();
  introduction->device_count = static_cast<uint32_t>(mine.devices.size());
  introduction->sums_of_library = mine.sums_of_library ? 1 : 0;
  for (size_t i = 0; i < mine.devices.size(); ++i) HEDDLE_PLUGIN_CHECK(identify(mine.devices[i], &introduction->devices[i]));
  return {};
}

std::string of(size_t rank) {
  return "rank " + std::to_string(rank);
}

// Gives all ranks the id of rank 0.
Status invite(const plugin::ResourceRequest& request, operators::RankControl& control, UniqueId* id) {
  Invitation own = {};
  if (request.rank() == 0) {
    const Result result = Library::get().ncclGetUniqueId(&own.id);
    if (result != Result::success) write_text(failed("ncclGetUniqueId", result).text, own.why);
  }
  std::vector<Invitation> all(static_cast<size_t>(request.size()), own);
  if (request.size() > 1) HEDDLE_PLUGIN_CHECK(control.exchange(&own, sizeof(own), all.data(), request.deadline_ns()));
  if (all[0].why[0] != '\0') return {HEDDLE_ERROR_DEVICE, of(0) + " can not begin to connect GPUs: " + all[0].why};
  *id = all[0].id;
  return {};
}

// Checks that a rank goes together with rank 0, and that no GPU belongs to two.
Status check(const std::vector<Introduction>& all, size_t rank) {
  const Introduction &one = all[rank], &first = all[0];
  if (one.why[0] != '\0') return plugin::unsupported(of(rank) + " can not take part in collectives of GPUs: " + one.why);
  if (one.version != first.version)
    return plugin::invalid(of(rank) + " has NCCL " + version_text(one.version) + ", and rank 0 has " + version_text(first.version) +
                           ": give all ranks the same library");
  if (one.device_count != first.device_count)
    return plugin::invalid(of(rank) + " has " + std::to_string(one.device_count) + " GPUs, and rank 0 has " +
                           std::to_string(first.device_count) + ": give all ranks as many");
  if (one.sums_of_library != first.sums_of_library)
    return plugin::invalid(of(rank) + " has another HEDDLE_NCCL_SUMS than rank 0: give all ranks the same");
  for (size_t other = 0; other < rank; ++other)
    for (uint32_t i = 0; i < one.device_count; ++i)
      if (std::count(all[other].devices, all[other].devices + all[other].device_count, one.devices[i]) > 0)
        return plugin::invalid(of(other) + " and " + of(rank) + " have the same GPU, which is device " + std::to_string(i) + " of " +
                               of(rank) +
                               ": NCCL takes one rank for each, so give each rank its own with --devices or CUDA_VISIBLE_DEVICES");
  return {};
}

}  // namespace

OwnPart own_part(const plugin::ResourceRequest& request) {
  OwnPart part;
  const auto read = [&]() -> Status {
    HEDDLE_PLUGIN_CHECK(LoadedLibrary::status());
    HEDDLE_PLUGIN_CHECK(read_sums(&part.sums_of_library));
    // The kernels were made for the setting when the library was opened.
    if (const auto* const library = request.need<operators::DeviceLibrary>("nccl.library")) part.sums_of_library = library->sums_of_library;
    if (const char* const blocking = std::getenv("NCCL_COMM_BLOCKING"); blocking && *blocking != '0')
      return plugin::invalid("NCCL_COMM_BLOCKING is \"" + std::string(blocking) + "\": no deadline would end a call of NCCL; unset it");
    for (const std::string& name : request.members()) HEDDLE_PLUGIN_CHECK(read_device(name, &part.devices.emplace_back()));
    if (part.devices.size() > max_devices)
      return plugin::unsupported("a process with " + std::to_string(part.devices.size()) + " GPUs in one communicator: it may have " +
                                 std::to_string(max_devices));
    return {};
  };
  part.status = read();
  return part;
}

Status introduce(const plugin::ResourceRequest& request, const OwnPart& mine, operators::RankControl& control, WholeCommunicator* whole) {
  Introduction own = {};
  const Status status = describe(mine, &own);
  if (!status.ok()) write_text(status.text, own.why);
  std::vector<Introduction> all(static_cast<size_t>(request.size()), own);
  if (request.size() > 1)
    HEDDLE_PLUGIN_CHECK(control.exchange(&own, sizeof(own), all.data(), request.deadline_ns()));
  else
    HEDDLE_PLUGIN_CHECK(status);
  for (size_t rank = 0; rank < all.size(); ++rank) HEDDLE_PLUGIN_CHECK(check(all, rank));
  whole->participants = own.device_count * static_cast<uint32_t>(all.size());
  whole->first = own.device_count * static_cast<uint32_t>(request.rank());
  return invite(request, control, &whole->id);
}

}  // namespace heddle::nccl
