#include "rendezvous/redis_connection.h"

#include <fcntl.h>
#include <hiredis.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "rendezvous/host_addresses.h"
#include "rendezvous/no_broken_pipe.h"

namespace heddle::rendezvous {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds patience{2};
constexpr size_t longest_answer = size_t{256} << 20;  // a report has a few kilobytes

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

// At least a millisecond: zero would be no time-out.
timeval left_until(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::microseconds>(deadline - Clock::now()).count();
  const auto time = std::max<int64_t>(left, 1000);
  return {.tv_sec = time / 1000000, .tv_usec = time % 1000000};
}

void free_reply(redisReply* reply) {
  if (reply) ::freeReplyObject(reply);
}

}  // namespace

void RedisConnection::Closer::operator()(redisContext* context) const {
  ::redisFree(context);
}

RedisConnection::RedisConnection(const RedisPlace& place)
    : place_(place), password_(environment("HEDDLE_REDIS_PASSWORD")), user_(environment("HEDDLE_REDIS_USERNAME")) {}
RedisConnection::~RedisConnection() = default;

std::string RedisConnection::address() const {
  const bool is_ipv6 = place_.host.find(':') != std::string::npos;
  return (is_ipv6 ? "[" + place_.host + "]" : place_.host) + ":" + std::to_string(place_.port);
}

Status RedisConnection::call(const std::vector<std::string>& words, std::initializer_list<RedisAnswer::Type> expected, RedisAnswer* answer,
                             bool* sent_twice) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const NoBrokenPipe no_signal;  // hiredis writes by write()
  const Deadline deadline = Clock::now() + patience;
  *sent_twice = false;
  const bool was_connected = context_ != nullptr;
  if (!was_connected) HEDDLE_PLUGIN_CHECK(connect(deadline));
  auto reply = exchange(words, deadline);
  if (!reply && was_connected && !late_) {  // the server has restarted, or closes connections that were quiet for long
    *sent_twice = true;
    HEDDLE_PLUGIN_CHECK(connect(deadline));
    reply = exchange(words, deadline);
  }
  if (!reply) return lost();
  if (reply->type == REDIS_REPLY_ERROR) return refused(std::string(reply->str, reply->len));
  answer->type = reply->type == REDIS_REPLY_NIL       ? RedisAnswer::nil
                 : reply->type == REDIS_REPLY_INTEGER ? RedisAnswer::integer
                 : reply->type == REDIS_REPLY_STRING  ? RedisAnswer::string
                                                      : RedisAnswer::other;
  if (std::find(expected.begin(), expected.end(), answer->type) == expected.end())
    return {HEDDLE_ERROR_DEVICE, "what answers at " + address() + " does not answer as Redis does: name a Redis server"};
  answer->number = reply->integer;
  answer->text = reply->str ? std::string(reply->str, reply->len) : std::string();
  return {};
}

Status RedisConnection::connect(Deadline deadline) {
  std::vector<std::string> addresses;
  if (Status status = addresses_of(place_.host, deadline, &addresses); !status.ok()) {
    status.text = "can not reach Redis at " + address() + ": " + status.text;
    return status;
  }
  for (const std::string& one : addresses) {
    context_.reset(::redisConnectWithTimeout(one.c_str(), place_.port, left_until(deadline)));
    if (context_ && context_->err == 0) break;
    why_ = context_ ? context_->errstr : "no memory";
    context_.reset();
  }
  if (!context_)
    return {HEDDLE_ERROR_DEVICE, "can not connect to Redis at " + address() + ": " + why_ + "; start a server there (redis-server --port " +
                                     std::to_string(place_.port) + "), or name the one that runs"};
  ::fcntl(context_->fd, F_SETFD, FD_CLOEXEC);
  Status status = authenticate(deadline);
  if (!status.ok()) context_.reset();
  return status;
}

Status RedisConnection::authenticate(Deadline deadline) {
  if (password_.empty() && user_.empty()) return {};
  if (password_.empty())
    return plugin::invalid("the environment variable HEDDLE_REDIS_USERNAME is set, and HEDDLE_REDIS_PASSWORD is not: set it too");
  std::vector<std::string> words = {"AUTH"};
  if (!user_.empty()) words.push_back(user_);
  words.push_back(password_);
  const auto reply = exchange(words, deadline);
  if (!reply) return lost();
  if (reply->type != REDIS_REPLY_ERROR) return {};
  // A server that does not know the command repeats the password in its answer, so no more than the code is told.
  const std::string text(reply->str, reply->len);
  const std::string at = "Redis at " + address();
  if (text.find("called without any password") != std::string::npos || text.find("no password is set") != std::string::npos)
    return {HEDDLE_ERROR_DEVICE, at + " has no password: unset the environment variable HEDDLE_REDIS_PASSWORD"};
  if (text.starts_with("WRONGPASS") || text.starts_with("ERR invalid password"))
    return {HEDDLE_ERROR_DEVICE, at + " does not accept the password" + (user_.empty() ? "" : " of user '" + user_ + "'") +
                                     ": correct the environment variable HEDDLE_REDIS_PASSWORD" +
                                     (user_.empty() ? ", and name a user in HEDDLE_REDIS_USERNAME if it has several" : "")};
  return {HEDDLE_ERROR_DEVICE, at + " does not let this process authenticate (" + text.substr(0, text.find(' ')) + ")"};
}

std::unique_ptr<redisReply, void (*)(redisReply*)> RedisConnection::exchange(const std::vector<std::string>& words, Deadline deadline) {
  std::vector<const char*> texts;
  std::vector<size_t> sizes;
  for (const std::string& word : words) texts.push_back(word.data()), sizes.push_back(word.size());
  errno = 0;
  const bool sent = ::redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), texts.data(), sizes.data()) == REDIS_OK;
  void* const reply = sent && send_all(deadline) ? next_reply(deadline) : nullptr;
  if (!reply) {
    late_ = context_->err == 0 || (context_->err == REDIS_ERR_IO && (errno == EAGAIN || errno == EWOULDBLOCK));
    why_ = context_->errstr;
    context_.reset();  // its next answer would be that to this command
  }
  return {static_cast<redisReply*>(reply), free_reply};
}

// The next two move one piece at a time: a wait of hiredis' own for a whole answer begins anew with each piece, so that a server that
// dribbles would hold it for ever. Without an error of the context, the time is over.
bool RedisConnection::send_all(Deadline deadline) {
  for (int done = 0; done == 0;) {
    if (Clock::now() >= deadline) return false;
    ::redisSetTimeout(context_.get(), left_until(deadline));
    if (::redisBufferWrite(context_.get(), &done) != REDIS_OK) return false;
  }
  return true;
}

void* RedisConnection::next_reply(Deadline deadline) {
  for (;;) {
    void* reply = nullptr;
    if (::redisGetReplyFromReader(context_.get(), &reply) != REDIS_OK) return nullptr;
    if (reply) return reply;
    if (Clock::now() >= deadline) return nullptr;
    if (context_->reader->len > longest_answer) {
      context_->err = REDIS_ERR_PROTOCOL;
      std::strcpy(context_->errstr, "an answer is too long");
      return nullptr;
    }
    ::redisSetTimeout(context_.get(), left_until(deadline));
    if (::redisBufferRead(context_.get()) != REDIS_OK) return nullptr;
  }
}

Status RedisConnection::lost() const {
  if (late_)
    return {HEDDLE_ERROR_DEVICE,
            "Redis at " + address() + " does not answer within 2 seconds: see whether its server hangs, or is no Redis"};
  return {HEDDLE_ERROR_DEVICE,
          "the connection to Redis at " + address() + " was lost: " + why_ + "; see whether its server still runs, and is Redis"};
}

Status RedisConnection::refused(const std::string& text) const {
  std::string hint;
  if (text.starts_with("NOAUTH")) hint = "; set the environment variable HEDDLE_REDIS_PASSWORD";
  if (text.starts_with("NOPERM")) hint = "; the user needs GET and SETNX for keys '" + place_.name + "/*'";
  if (text.starts_with("OOM")) hint = "; raise its maxmemory, or remove keys that earlier jobs left";
  if (text.starts_with("READONLY")) hint = "; name the server that this one copies";
  return {HEDDLE_ERROR_DEVICE, "Redis at " + address() + " refuses: " + text.substr(0, text.find('\n')) + hint};
}

}  // namespace heddle::rendezvous
