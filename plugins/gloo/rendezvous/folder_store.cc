// The store in a folder, which may be on another machine (NFS).
//
// A value is written to a file of a random name, which is then linked to the name of the key: the link is made by one process alone, and a
// reader sees the whole value or no file. A process that is killed in between leaves a file ".*.new", which is no key.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "rendezvous/key_text.h"
#include "rendezvous/stores.h"

namespace heddle::rendezvous {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  const int number_;
};

Status folder_failed(const std::string& what, const std::string& path, int error) {
  std::string hint;
  if (error == ENOSPC || error == EDQUOT) hint = "; make room there";
  if (error == EACCES || error == EPERM || error == EROFS) hint = "; all processes of the job must be able to write there";
  if (error == ENOTDIR || error == EEXIST) hint = "; name a folder, or one that can be made";
  if (error == ENOENT || error == ESTALE) hint = "; the folder of a job must stay while it runs";
  return {HEDDLE_ERROR_DEVICE, "can not " + what + " " + path + ": " + std::generic_category().message(error) + hint};
}

constexpr off_t longest_value = off_t{256} << 20;  // a report has a few kilobytes

// Returns 0, or errno.
int write_whole(int file, const std::string& value) {
  for (size_t done = 0; done < value.size();) {
    const ssize_t wrote = ::write(file, value.data() + done, value.size() - done);
    if (wrote < 0 && errno != EINTR) return errno;
    if (wrote > 0) done += static_cast<size_t>(wrote);
  }
  return ::fsync(file) == 0 ? 0 : errno;
}

int read_whole(int file, std::string* value) {
  value->clear();
  char buffer[4096];
  for (;;) {
    const ssize_t got = ::read(file, buffer, sizeof(buffer));
    if (got == 0) return 0;
    if (got < 0 && errno != EINTR) return errno;
    if (got > 0) value->append(buffer, static_cast<size_t>(got));
  }
}

class FolderStore final : public Store {
 public:
  FolderStore(const std::string& folder, const std::string& communicator, int32_t rank)
      : Store(rank), folder_(folder), keys_(folder + "/" + escaped(communicator)) {}

  Status make() {
    std::error_code error;
    std::filesystem::create_directories(keys_, error);
    if (error) return folder_failed("make the folder", keys_, error.value());
    return {};
  }

  Status get(const Key& key, std::string* value, bool* found) override {
    *found = false;
    // Opening the folder makes NFS forget that it did not find this file the last time.
    const Descriptor folder(::open(keys_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.number() < 0) return folder_failed("open the folder", keys_, errno);
    const Descriptor file(::openat(folder.number(), name_of(key).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.number() < 0) return errno == ENOENT ? Status() : folder_failed("read", path_of(key), errno);
    // A pipe would be waited for, and a device or a huge file never end.
    struct stat about;
    if (::fstat(file.number(), &about) != 0) return folder_failed("read", path_of(key), errno);
    if (!S_ISREG(about.st_mode) || about.st_size > longest_value)
      return {HEDDLE_ERROR_DEVICE, path_of(key) + " is no file that this program writes: remove it, or name another folder"};
    std::string text;
    if (const int error = read_whole(file.number(), &text)) return folder_failed("read", path_of(key), error);
    *value = std::move(text);
    *found = true;
    return {};
  }

  std::string where() const override { return "file:" + folder_; }

 protected:
  Status put(const Key& key, const std::string& value, bool* written) override {
    *written = false;
    const std::string path = path_of(key), unfinished = keys_ + "/." + std::to_string(rank_) + "." + random_digits(8) + ".new";
    const Descriptor file(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.number() < 0) return folder_failed("make", unfinished, errno);
    int error = write_whole(file.number(), value);
    if (error == 0 && ::link(unfinished.c_str(), path.c_str()) != 0) error = errno;
    struct stat about;
    // A link over NFS may be made, and its answer be lost.
    *written = error == 0 || (error == EEXIST && ::fstat(file.number(), &about) == 0 && about.st_nlink == 2);
    ::unlink(unfinished.c_str());
    if (*written || error == EEXIST) return {};
    return folder_failed("write", path, error);
  }

 private:
  static std::string name_of(const Key& key) { return std::to_string(key.rank) + "." + escaped(key.name); }
  std::string path_of(const Key& key) const { return keys_ + "/" + name_of(key); }

  const std::string folder_, keys_;
};

}  // namespace

Status make_folder_store(const std::string& folder, const std::string& communicator, int32_t rank, std::unique_ptr<Store>* store) {
  auto made = std::make_unique<FolderStore>(folder, communicator, rank);
  HEDDLE_PLUGIN_CHECK(made->make());
  *store = std::move(made);
  return {};
}

}  // namespace heddle::rendezvous
