#include "rendezvous/host_addresses.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace heddle::rendezvous {

namespace {

// All that glibc's thread reads and writes while it looks a name up.
struct Lookup {
  std::string host;
  addrinfo hints{};
  gaicb request{};
  ~Lookup() {
    if (request.ar_result) ::freeaddrinfo(request.ar_result);
  }
};

// Returns 0 or an EAI_ number.
int look_up(const std::string& host, std::chrono::steady_clock::time_point deadline, std::unique_ptr<Lookup>* found) {
  auto lookup = std::make_unique<Lookup>();
  lookup->host = host;
  lookup->hints.ai_socktype = SOCK_STREAM;
  lookup->hints.ai_flags = AI_NUMERICHOST;  // an address needs no thread that looks it up
  if (::getaddrinfo(host.c_str(), nullptr, &lookup->hints, &lookup->request.ar_result) == 0) {
    *found = std::move(lookup);
    return 0;
  }
  lookup->hints.ai_flags = 0;
  lookup->request.ar_name = lookup->host.c_str();
  lookup->request.ar_request = &lookup->hints;
  gaicb* requests[] = {&lookup->request};
  if (const int error = ::getaddrinfo_a(GAI_NOWAIT, requests, 1, nullptr)) return error;
  for (;;) {
    const int error = ::gai_error(requests[0]);
    if (error != EAI_INPROGRESS) {
      *found = std::move(lookup);
      return error;
    }
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) {
      // A lookup that has begun can not be ended: it keeps its memory, which is lost.
      if (::gai_cancel(requests[0]) == EAI_NOTCANCELED) static_cast<void>(lookup.release());
      return EAI_AGAIN;
    }
    const timespec time{left / 1000000000, left % 1000000000};
    ::gai_suspend(requests, 1, &time);
  }
}

}  // namespace

plugin::Status addresses_of(const std::string& host, std::chrono::steady_clock::time_point deadline, std::vector<std::string>* addresses) {
  addresses->clear();
  std::unique_ptr<Lookup> found;
  if (const int error = look_up(host, deadline, &found))
    return {HEDDLE_ERROR_DEVICE, "the host '" + host + "' is not found: " + ::gai_strerror(error) + "; name it as this machine knows it"};
  std::vector<std::string> others;
  for (const addrinfo* one = found->request.ar_result; one; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (::getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) continue;
    (one->ai_family == AF_INET ? *addresses : others).emplace_back(text);
  }
  addresses->insert(addresses->end(), others.begin(), others.end());
  if (addresses->empty()) return {HEDDLE_ERROR_DEVICE, "the host '" + host + "' has no address"};
  return {};
}

}  // namespace heddle::rendezvous
