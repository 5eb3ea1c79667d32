#include "rendezvous/job_store.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <thread>

#include "rendezvous/stores.h"

namespace heddle::rendezvous {

using Clock = std::chrono::steady_clock;

bool Pauses::pause() {
  const Clock::time_point now = Clock::now();
  if (cancelled() || now >= patience_.deadline) return false;
  std::this_thread::sleep_until(std::min(patience_.deadline, now + next_));
  next_ = std::min(next_ * 3 / 2, std::chrono::microseconds(20000));
  return true;
}

Status Store::set(const Key& key, const std::string& value, bool* written) {
  if (key.rank != rank_)
    return plugin::invalid("rank " + std::to_string(rank_) + " can not write '" + key.name + "' of rank " + std::to_string(key.rank) +
                           " in " + where());
  return put(key, value, written);
}

Status Store::has(const Key& key, bool* found) {
  std::string ignored;
  return get(key, &ignored, found);
}

Status Store::wait(const Key& key, std::string* value, const Patience& patience) {
  Pauses pauses(patience);
  for (bool found = false;;) {
    HEDDLE_PLUGIN_CHECK(get(key, value, &found));
    if (found) return {};
    if (pauses.pause()) continue;
    if (pauses.cancelled()) return plugin::cancelled();
    return {HEDDLE_ERROR_DEVICE, "rank " + std::to_string(key.rank) + " has not written '" + key.name + "' in " + where() + " in time"};
  }
}

namespace {

constexpr char forms[] = "file:DIR, redis:HOST:PORT, redis:HOST:PORT/NAME or pmix";

// Takes HOST:PORT[/NAME] apart.
bool parse_redis(std::string_view text, RedisPlace* place) {
  place->name = "heddle";
  if (const size_t slash = text.find('/'); slash != std::string_view::npos) {
    place->name = text.substr(slash + 1);
    text = text.substr(0, slash);
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || place->name.empty()) return false;
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string_view::npos)
    return false;  // an address of IPv6 without brackets: its last part is not told from a port
  place->host = host;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), place->port);
  return error == std::errc() && end == port.data() + port.size() && place->port > 0 && place->port < 65536 && !host.empty();
}

// A rendezvous, taken apart.
struct Form {
  enum class Kind : uint8_t { folder, redis, pmix } kind = Kind::pmix;
  std::string folder;
  RedisPlace redis;
};

Status parse(const std::string& rendezvous, Form* form) {
  if (rendezvous == "pmix") return {};
  if (rendezvous.starts_with("file:") && rendezvous.size() > 5) {
    form->kind = Form::Kind::folder;
    form->folder = rendezvous.substr(5);
    return {};
  }
  if (!rendezvous.starts_with("redis:")) return plugin::invalid("'" + rendezvous + "' is no rendezvous: write " + forms);
  form->kind = Form::Kind::redis;
  // It may be a password that stands there: the text is not repeated.
  if (rendezvous.find('@') != std::string::npos)
    return plugin::invalid(
        "the rendezvous of Redis has an '@': it is redis:HOST:PORT or redis:HOST:PORT/NAME, and a password comes from the environment "
        "variable HEDDLE_REDIS_PASSWORD");
  if (!parse_redis(std::string_view(rendezvous).substr(6), &form->redis))
    return plugin::invalid("'" + rendezvous +
                           "' is no rendezvous: Redis is redis:HOST:PORT or redis:HOST:PORT/NAME, with a port from 1 to 65535, and an "
                           "address of IPv6 in brackets");
  return {};
}

}  // namespace

Status check_rendezvous(const std::string& rendezvous) {
  Form ignored;
  return parse(rendezvous, &ignored);
}

Status make_store(const std::string& rendezvous, const std::string& communicator, int32_t rank, int32_t ranks,
                  std::unique_ptr<Store>* store) {
  if (rank < 0 || rank >= ranks)
    return plugin::invalid("rank " + std::to_string(rank) + " is none of " + std::to_string(ranks) + ": they are counted from 0");
  Form form;
  HEDDLE_PLUGIN_CHECK(parse(rendezvous, &form));
  switch (form.kind) {
    case Form::Kind::folder:
      return make_folder_store(form.folder, communicator, rank, store);
    case Form::Kind::redis:
      return make_redis_store(form.redis, communicator, rank, store);
    case Form::Kind::pmix:
      return make_pmix_store(communicator, rank, ranks, store);
  }
  return {};
}

}  // namespace heddle::rendezvous
