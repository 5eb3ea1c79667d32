#include "rendezvous/host_addresses.h"

#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace heddle::rendezvous {

namespace {

// A lookup, which the thread that does it shares with the one that waits for it.
struct Lookup {
  explicit Lookup(const std::string& name) : host(name) { hints.ai_socktype = SOCK_STREAM; }
  ~Lookup() {
    if (found) ::freeaddrinfo(found);
  }
  const std::string host;
  addrinfo hints{};
  addrinfo* found = nullptr;
  int error = EAI_AGAIN;
  bool done = false;
  std::mutex mutex;
  std::condition_variable changed;
};

void look_up(const std::shared_ptr<Lookup>& lookup) {
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(lookup->host.c_str(), nullptr, &lookup->hints, &found);
  const std::lock_guard<std::mutex> lock(lookup->mutex);
  lookup->found = found;
  lookup->error = error;
  lookup->done = true;
  lookup->changed.notify_all();
}

// Keeps the library with this code in memory: a thread is still in it. This does nothing in a program that has the code itself.
void keep_this_library() {
  Dl_info about;
  if (::dladdr(reinterpret_cast<const void*>(&look_up), &about) != 0 && about.dli_fname)
    ::dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

// Returns 0 or an EAI_ number. getaddrinfo has no time-out, and takes tens of seconds when the servers of names do not answer;
// getaddrinfo_a has one, but its thread is unknown to ThreadSanitizer, which ends the program.
int wait_for(const std::shared_ptr<Lookup>& lookup, std::chrono::steady_clock::time_point deadline) {
  lookup->hints.ai_flags = AI_NUMERICHOST;
  if (::getaddrinfo(lookup->host.c_str(), nullptr, &lookup->hints, &lookup->found) == 0) return 0;  // an address needs no thread
  lookup->hints.ai_flags = 0;
  std::thread thread;
  try {
    thread = std::thread(look_up, lookup);
  } catch (const std::system_error&) {
    return EAI_MEMORY;
  }
  std::unique_lock<std::mutex> lock(lookup->mutex);
  const bool done = lookup->changed.wait_until(lock, deadline, [&] { return lookup->done; });
  lock.unlock();
  if (done) {
    thread.join();
    return lookup->error;
  }
  thread.detach();
  keep_this_library();
  return EAI_AGAIN;
}

}  // namespace

plugin::Status addresses_of(const std::string& host, std::chrono::steady_clock::time_point deadline, std::vector<std::string>* addresses) {
  addresses->clear();
  const auto lookup = std::make_shared<Lookup>(host);
  if (const int error = wait_for(lookup, deadline))
    return {HEDDLE_ERROR_DEVICE, "the host '" + host + "' is not found: " + ::gai_strerror(error) + "; name it as this machine knows it"};
  std::vector<std::string> others;
  for (const addrinfo* one = lookup->found; one; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    (one->ai_family == AF_INET ? *addresses : others).emplace_back(text);
  }
  addresses->insert(addresses->end(), others.begin(), others.end());
  if (addresses->empty()) return {HEDDLE_ERROR_DEVICE, "the host '" + host + "' has no address"};
  return {};
}

}  // namespace heddle::rendezvous
