#include "nccl/nccl_board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <string>

namespace heddle::cuda::standin {
namespace {

// This is what an id holds: the process and the file of its memory there.
struct Where {
  uint64_t magic, number;
  int32_t process, file;
};
constexpr uint64_t magic = 0x6865646c6e63636c;

constexpr uint64_t header_bytes = (sizeof(NcclBoardHeader) + 4095) / 4096 * 4096;
constexpr uint64_t all_bytes =
    header_bytes + max_nccl_ranks * NcclBoard::posted_bytes + uint64_t{max_nccl_ranks} * max_nccl_ranks * NcclBoard::mail_bytes;

[[noreturn]] void give_up(const char* what) {
  std::perror((std::string("cuda stand-in: the memory of a communicator of NCCL: ") + what).c_str());
  std::abort();
}

}  // namespace

// Pages that are not used take no memory.
NcclBoard::NcclBoard(int file, uint64_t number) : file_(file), number_(number) {
  void* const mapped = ::mmap(nullptr, all_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (mapped == MAP_FAILED) give_up("mmap");
  base_ = static_cast<std::byte*>(mapped);
  header_ = static_cast<NcclBoardHeader*>(mapped);  // of zeros, which its atomics may begin with
}

NcclBoard::~NcclBoard() {
  ::munmap(base_, all_bytes);
  ::close(file_);
}

std::shared_ptr<NcclBoard> NcclBoard::make(nccl::UniqueId* id) {
  static std::atomic<uint64_t> made{0};
  const int file = ::memfd_create("heddle-nccl", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(all_bytes)) != 0) give_up("memfd");
  const Where where = {magic, static_cast<uint64_t>(::getpid()) << 32 | ++made, ::getpid(), file};
  *id = {};
  std::memcpy(id->bytes, &where, sizeof(where));
  return std::shared_ptr<NcclBoard>(new NcclBoard(file, where.number));
}

std::shared_ptr<NcclBoard> NcclBoard::open(const nccl::UniqueId& id) {
  Where where = {};
  std::memcpy(&where, id.bytes, sizeof(where));
  if (where.magic != magic) return nullptr;
  const std::string path = "/proc/" + std::to_string(where.process) + "/fd/" + std::to_string(where.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  return file < 0 ? nullptr : std::shared_ptr<NcclBoard>(new NcclBoard(file, where.number));
}

std::byte* NcclBoard::posted(int rank) const {
  return base_ + header_bytes + static_cast<uint64_t>(rank) * posted_bytes;
}

std::byte* NcclBoard::mail(int from, int to) const {
  return base_ + header_bytes + max_nccl_ranks * posted_bytes + static_cast<uint64_t>(from * max_nccl_ranks + to) * mail_bytes;
}

}  // namespace heddle::cuda::standin
