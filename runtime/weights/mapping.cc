#include "weights/mapping.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/checked.h"
#include "base/text/limit_names.h"
#include "base/text/text.h"

namespace heddle {
namespace {

// The deleter of a mapped blob's owner: keeps the mapping alive and lets Mapping::of recognise it.
struct MappingKeeper {
  std::shared_ptr<const Mapping> mapping;
  void operator()(const void*) {}
};

int64_t page_bytes() {
  return ::sysconf(_SC_PAGESIZE);
}

}  // namespace

Result<std::shared_ptr<const Mapping>> Mapping::open(const std::filesystem::path& folder, std::string_view name, int64_t limit_bytes) {
  std::shared_ptr<Mapping> mapping(new Mapping);
  mapping->name_ = std::string(name);
  HEDDLE_TRY(mapping->fd_, open_beneath(folder, name));
  struct stat info = {};
  if (::fstat(mapping->fd_.get(), &info) != 0)
    return Status(Code::file_unreadable, fmt::format("can't stat the weights file {}: {}", quoted(name), errno_text(errno)));
  if (info.st_size > limit_bytes)
    return over_limit("weight_file_bytes", limit_bytes, fmt::format("the weights file {} has {}", quoted(name), human_bytes(info.st_size)));
  mapping->size_ = info.st_size;
  mapping->modified_s_ = info.st_mtim.tv_sec;
  mapping->modified_ns_ = info.st_mtim.tv_nsec;
  // One anonymous page follows the file's pages, so that vector loads may read past a tensor that ends at a page's end.
  const auto file_pages = static_cast<size_t>(align_up(mapping->size_, page_bytes()));
  mapping->reserved_ = file_pages + static_cast<size_t>(page_bytes());
  void* base = ::mmap(nullptr, mapping->reserved_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return Status(Code::out_of_memory, fmt::format("can't map the weights file {}: {}", quoted(name), errno_text(errno)));
  mapping->data_ = static_cast<const std::byte*>(base);
  if (file_pages > 0 && ::mmap(base, file_pages, PROT_READ, MAP_PRIVATE | MAP_FIXED, mapping->fd_.get(), 0) == MAP_FAILED)
    return Status(Code::file_unreadable, fmt::format("can't map the weights file {}: {}", quoted(name), errno_text(errno)));
  return std::shared_ptr<const Mapping>(std::move(mapping));
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), reserved_);
}

Status Mapping::read(int64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t n = ::pread(fd_.get(), into.data(), into.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status(Code::file_unreadable, fmt::format("can't read the weights file {}: {}", quoted(name_), errno_text(errno)));
    if (n == 0) return Status(Code::file_truncated, fmt::format("the weights file {} is shorter than it was", quoted(name_)), "restore it");
    into = into.subspan(static_cast<size_t>(n));
    offset += n;
  }
  return {};
}

Status Mapping::still_whole() const {
  struct stat info = {};
  if (::fstat(fd_.get(), &info) != 0)
    return Status(Code::file_unreadable, fmt::format("can't stat the weights file {}: {}", quoted(name_), errno_text(errno)));
  if (info.st_size < size_)
    return Status(Code::file_truncated,
                  fmt::format("the weights file {} has shrunk from {} to {}", quoted(name_), human_bytes(size_), human_bytes(info.st_size)),
                  "restore it and open the net again");
  if (info.st_mtim.tv_sec != modified_s_ || info.st_mtim.tv_nsec != modified_ns_)
    return Status(Code::weights_mismatch, fmt::format("the weights file {} was changed after it was opened", quoted(name_)),
                  "open the net again; replace weights files by rename");
  return {};
}

void Mapping::release(const std::byte* begin, int64_t bytes) const {
  const int64_t page = page_bytes();
  const int64_t offset = begin - data_;
  if (offset < 0 || offset > size_ || bytes > size_ - offset) return;
  const int64_t first = align_up(offset, page);
  const int64_t last = (offset + bytes) & ~(page - 1);
  if (last <= first) return;
  // This is only advice: when the kernel declines, the pages stay.
  (void)::madvise(const_cast<std::byte*>(data_) + first, static_cast<size_t>(last - first), MADV_DONTNEED);
}

std::shared_ptr<const Blob> Mapping::blob(DType dtype, const Shape& shape, int64_t offset, int64_t bytes) const {
  auto blob = std::make_shared<Blob>();
  blob->dtype = dtype;
  blob->shape = shape;
  blob->data = data_ + offset;
  blob->bytes = bytes;
  blob->owner = std::shared_ptr<const void>(static_cast<const void*>(this), MappingKeeper{shared_from_this()});
  return blob;
}

const Mapping* Mapping::of(const Blob& blob) {
  const MappingKeeper* keeper = std::get_deleter<MappingKeeper>(blob.owner);
  return keeper != nullptr ? keeper->mapping.get() : nullptr;
}

}  // namespace heddle
