// The store in a Redis server.
#include <sys/socket.h>

#include "rendezvous/redis_server.h"
#include "rendezvous/store_helpers.h"

namespace heddle::testing_rendezvous {
namespace {

MakeStore maker(const RedisServer& server) {
  return [&](int32_t rank, const std::string& communicator) { return store_at(server.rendezvous(), rank, 2, communicator); };
}

Status status_of_store(const std::string& rendezvous) {
  std::unique_ptr<Store> store;
  return make_store(rendezvous, "world", 0, 2, &store);
}

TEST(RedisStore, KeysAreWrittenOnce) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const RedisServer server;
  expect_keys_are_written_once(maker(server));
}

TEST(RedisStore, OneOfManyThreadsWrites) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const RedisServer server;
  expect_one_of_many_threads_writes(maker(server));
}

TEST(RedisStore, WaitsEnd) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const RedisServer server;
  expect_waits_end(maker(server));
}

TEST(RedisStore, JobsOfTwoNamesAreApart) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const RedisServer server;
  const auto one = store_at(server.rendezvous() + "/one"), two = store_at(server.rendezvous() + "/two"),
             unnamed = store_at(server.rendezvous()), named = store_at(server.rendezvous() + "/heddle");
  EXPECT_TRUE(set(*one, {0, "a"}, "1"));
  EXPECT_TRUE(set(*two, {0, "a"}, "2"));
  EXPECT_TRUE(set(*unnamed, {0, "a"}, "3"));
  EXPECT_EQ(get(*one, {0, "a"}) + get(*two, {0, "a"}) + get(*named, {0, "a"}), "123");
  EXPECT_EQ(one->where(), server.rendezvous() + "/one");
  EXPECT_EQ(get(*store_at("redis:localhost" + server.address().substr(9) + "/one"), {0, "a"}), "1") << "a host may have a name";
}

TEST(RedisStore, PasswordsComeFromTheEnvironmentAndAreNotRepeated) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const RedisServer server({"--requirepass", "open sesame", "--user", "alice", "on", ">wonderland", "~*", "+@all"});
  expect_error(status_of_store(server.rendezvous()), HEDDLE_ERROR_DEVICE,
               {server.address(), "NOAUTH", "set the environment variable HEDDLE_REDIS_PASSWORD"});
  {
    const EnvironmentVariable wrong("HEDDLE_REDIS_PASSWORD", "open barley");
    const Status status = status_of_store(server.rendezvous());
    expect_error(status, HEDDLE_ERROR_DEVICE,
                 {server.address(), "does not accept the password", "correct the environment variable HEDDLE_REDIS_PASSWORD"});
    EXPECT_EQ(status.text.find("barley"), std::string::npos) << status.text;
  }
  const EnvironmentVariable right("HEDDLE_REDIS_PASSWORD", "open sesame");
  const auto store = store_at(server.rendezvous());
  EXPECT_TRUE(set(*store, {0, "a"}, "x"));
  EXPECT_EQ(store->where().find("sesame"), std::string::npos);
  const EnvironmentVariable user("HEDDLE_REDIS_USERNAME", "alice");
  const Status status = status_of_store(server.rendezvous());
  expect_error(status, HEDDLE_ERROR_DEVICE, {server.address(), "does not accept the password of user 'alice'"});
  EXPECT_EQ(status.text.find("sesame"), std::string::npos) << status.text;
  const EnvironmentVariable hers("HEDDLE_REDIS_PASSWORD", "wonderland");
  EXPECT_EQ(get(*store_at(server.rendezvous()), {0, "a"}), "x");
}

TEST(RedisStore, APasswordThatTheServerDoesNotHaveIsAnError) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const RedisServer server;
  {
    const EnvironmentVariable password("HEDDLE_REDIS_PASSWORD", "secret");
    expect_error(status_of_store(server.rendezvous()), HEDDLE_ERROR_DEVICE, {server.address(), "has no password", "unset"});
  }
  const EnvironmentVariable user("HEDDLE_REDIS_USERNAME", "alice");
  expect_error(status_of_store(server.rendezvous()), HEDDLE_ERROR_INVALID,
               {"HEDDLE_REDIS_USERNAME is set, and HEDDLE_REDIS_PASSWORD is not"});
}

// Redis repeats the words of a command that it does not know.
TEST(RedisStore, AServerThatRepeatsThePasswordIsNotQuoted) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const RedisServer server({"--rename-command", "AUTH", ""});
  const EnvironmentVariable password("HEDDLE_REDIS_PASSWORD", "secret");
  const Status status = status_of_store(server.rendezvous());
  expect_error(status, HEDDLE_ERROR_DEVICE, {server.address(), "does not let this process authenticate (ERR)"});
  EXPECT_EQ(status.text.find("secret"), std::string::npos) << status.text;
}

TEST(RedisStore, WhatTheServerRefusesIsTold) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  const RedisServer server({"--user", "reader", "on", ">wonderland", "~*", "+get", "+auth"});
  const EnvironmentVariable user("HEDDLE_REDIS_USERNAME", "reader"), password("HEDDLE_REDIS_PASSWORD", "wonderland");
  const auto store = store_at(server.rendezvous());
  bool written = true;
  expect_error(store->set({0, "a"}, "x", &written), HEDDLE_ERROR_DEVICE, {server.address(), "NOPERM", "GET and SETNX for keys 'heddle/*'"});
  EXPECT_FALSE(written);
}

TEST(RedisStore, NoServerIsAnError) {
  const std::string address = "127.0.0.1:" + std::to_string(Listener().port());
  expect_error(status_of_store("redis:" + address), HEDDLE_ERROR_DEVICE,
               {"can not connect to Redis at " + address, "Connection refused", "redis-server --port"});
  expect_error(status_of_store("redis:[::1]:1"), HEDDLE_ERROR_DEVICE, {"[::1]:1"});
  expect_error(status_of_store("redis:no-such-host.invalid:6379"), HEDDLE_ERROR_DEVICE, {"no-such-host.invalid:6379", "is not found"});
}

TEST(RedisStore, WhatIsNoRedisIsAnError) {
  const Listener other;
  std::thread thread([&] {
    const int connection = other.accept();
    EXPECT_GT(::send(connection, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL), 0);
    char buffer[100];
    while (::recv(connection, buffer, sizeof(buffer), 0) > 0) {
    }
    ::close(connection);
  });
  expect_error(status_of_store("redis:127.0.0.1:" + std::to_string(other.port())), HEDDLE_ERROR_DEVICE,
               {"127.0.0.1:" + std::to_string(other.port()), "was lost: Protocol error", "is Redis"});
  thread.join();
}

// Answers the first question of the next connection: `answer` at once, and then a byte after the other until the connection is closed.
std::thread dribbling_server(const Listener& listener, const std::string& answer) {
  return std::thread([&listener, answer] {
    const int connection = listener.accept();
    char buffer[100];
    EXPECT_GT(::recv(connection, buffer, sizeof(buffer), 0), 0);
    EXPECT_EQ(::send(connection, answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
    while (::send(connection, "x", 1, MSG_NOSIGNAL) == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::close(connection);
  });
}

TEST(RedisStore, AnAnswerThatNeverEndsIsAnError) {
  const Listener other;
  std::thread thread = dribbling_server(other, "$1000000000\r\n");
  const std::string address = "127.0.0.1:" + std::to_string(other.port());
  expect_error(status_of_store("redis:" + address), HEDDLE_ERROR_DEVICE, {address, "does not answer within 2 seconds"});
  thread.join();
}

TEST(RedisStore, AnAnswerOfAnotherTypeIsAnError) {
  for (const char* const answer : {":1\r\n", "*1\r\n:1\r\n", "+OK\r\n"}) {
    const Listener other;
    std::thread thread = dribbling_server(other, answer);
    const std::string address = "127.0.0.1:" + std::to_string(other.port());
    expect_error(status_of_store("redis:" + address), HEDDLE_ERROR_DEVICE, {address, "does not answer as Redis does"});
    thread.join();
  }
}

TEST(RedisStore, AServerThatHangsIsAnError) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  RedisServer server;
  const auto store = store_at(server.rendezvous());
  EXPECT_TRUE(set(*store, {0, "a"}, "x"));
  server.signal(SIGSTOP);
  std::string value;
  bool found = false;
  expect_error(store->get({0, "a"}, &value, &found), HEDDLE_ERROR_DEVICE, {server.address(), "does not answer within 2 seconds"});
  expect_error(status_of_store(server.rendezvous()), HEDDLE_ERROR_DEVICE, {server.address(), "does not answer within 2 seconds"});
  server.signal(SIGCONT);
  EXPECT_EQ(get(*store, {0, "a"}), "x") << "an answer that came late is that to another question";
}

TEST(RedisStore, AServerThatIsKilledIsAnErrorAndOneThatRestartsIsNone) {
  HEDDLE_NEEDS_PROGRAM("redis-server");
  RedisServer server;
  const auto store = store_at(server.rendezvous());
  EXPECT_TRUE(set(*store, {0, "a"}, "x"));
  server.kill();
  std::string value;
  bool found = false, written = false;
  for (int i = 0; i < 3; ++i) {
    expect_error(store->get({0, "a"}, &value, &found), HEDDLE_ERROR_DEVICE, {server.address(), "Connection refused"});
    expect_error(store->set({0, "b"}, "x", &written), HEDDLE_ERROR_DEVICE, {server.address(), "Connection refused"});
  }
  server.start();
  EXPECT_TRUE(set(*store, {0, "a"}, "y")) << "it has forgotten all";
  server.kill();
  server.start();
  EXPECT_TRUE(set(*store, {0, "b"}, "z"));
  EXPECT_EQ(get(*store, {0, "b"}), "z");
}

// A server that ends with answers that were not read, or questions that it has not read, resets its connections: writing to one then is
// SIGPIPE, which would end this test.
TEST(RedisStore, AConnectionThatIsResetEndsNoProcess) {
  auto server = std::make_unique<Listener>();
  const std::string address = "127.0.0.1:" + std::to_string(server->port());
  std::unique_ptr<Store> store;
  std::thread thread([&] {
    const int connection = server->accept();
    char buffer[1000];
    EXPECT_GT(::recv(connection, buffer, sizeof(buffer), 0), 0);
    EXPECT_EQ(::send(connection, "$-1\r\n", 5, MSG_NOSIGNAL), 5);
    server.reset();
    ::shutdown(connection, SHUT_WR);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the end arrives before the reset
    const linger at_once{1, 0};
    ::setsockopt(connection, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    ::close(connection);
  });
  EXPECT_OK(make_store("redis:" + address, "world", 0, 2, &store));
  thread.join();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::string value;
  bool found = false;
  expect_error(store->get({0, "a"}, &value, &found), HEDDLE_ERROR_DEVICE, {address, "Connection refused"});
}

}  // namespace
}  // namespace heddle::testing_rendezvous
