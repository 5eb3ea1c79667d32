#include "plugin/elf_check.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <vector>

namespace heddle {

Status check_elf(const std::filesystem::path& file, const std::string& shown) {
  const auto refuse = [&](const std::string& why) {
    return Status(Code::plugin_unreadable, fmt::format("plugin {} {}", shown, why),
                  "name a shared library that was built for this machine");
  };
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return refuse("is not a file");
  const uint64_t size = std::filesystem::file_size(file, error);
  std::ifstream in(file, std::ios::binary);
  if (error || !in) return refuse("cannot be read");
  Elf64_Ehdr header;
  if (!in.read(reinterpret_cast<char*>(&header), sizeof(header)) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return refuse("is not a shared library");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) return refuse("was built for another kind of machine");
  if (header.e_type != ET_DYN || header.e_phentsize != sizeof(Elf64_Phdr)) return refuse("is not a shared library");
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  in.seekg(static_cast<std::streamoff>(header.e_phoff));
  if (!in.read(reinterpret_cast<char*>(segments.data()), static_cast<std::streamsize>(segments.size() * sizeof(Elf64_Phdr))))
    return refuse("is truncated");
  for (const Elf64_Phdr& segment : segments)
    if (segment.p_type == PT_LOAD && (segment.p_offset > size || segment.p_filesz > size - segment.p_offset)) return refuse("is truncated");
  return {};
}

}  // namespace heddle
