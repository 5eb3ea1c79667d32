// A Redis server of a test's own, on a free port of this machine's loopback interface, which keeps nothing.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "load/temporary_folder.h"

namespace heddle::testing_rendezvous {

inline bool is_installed(const std::string& program) {
  return std::system(("command -v " + program + " > /dev/null 2>&1").c_str()) == 0;
}
#define HEDDLE_NEEDS_PROGRAM(program) \
  if (!is_installed(program)) GTEST_SKIP() << program << " is not installed"

// A socket that listens on a port of its own, as what is no Redis does.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_, 8), 0);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ::ntohs(address.sin_port);
  }
  ~Listener() { ::close(socket_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  int port() const { return port_; }
  int accept() const { return ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  const int socket_;
  int port_ = 0;
};

class RedisServer {
 public:
  explicit RedisServer(std::vector<std::string> options = {}) : options_(std::move(options)) {
    // Another program may take the port that is free now.
    for (int i = 0; i < 3 && process_ < 0; ++i) {
      port_ = Listener().port();
      start();
    }
    EXPECT_GT(process_, 0) << testing::read_text(folder_ / "log");
  }
  ~RedisServer() { kill(); }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  // Also again, after kill(), on the same port: it has forgotten all.
  void start() {
    std::vector<std::string> words = {"redis-server", "--port", std::to_string(port_),  "--bind", "127.0.0.1", "--save", "", "--appendonly",
                                      "no",           "--dir",  folder_.path().string()};
    words.insert(words.end(), options_.begin(), options_.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const std::string log = (folder_ / "log").string();
    process_ = ::fork();
    if (process_ == 0) {
      const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
      ::dup2(out, 1);
      ::dup2(out, 2);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    while (!answers()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (::waitpid(process_, nullptr, WNOHANG) != 0) return static_cast<void>(process_ = -1);
    }
  }
  void signal(int number) { ::kill(process_, number); }
  void kill() {
    if (process_ <= 0) return;
    signal(SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string rendezvous() const { return "redis:" + address(); }

 private:
  bool answers() const {
    const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    address.sin_port = ::htons(static_cast<uint16_t>(port_));
    const bool connected = ::connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    ::close(connection);
    return connected;
  }
  const std::vector<std::string> options_;
  const testing::TemporaryFolder folder_;
  int port_ = 0;
  pid_t process_ = -1;
};

}  // namespace heddle::testing_rendezvous
