// The rules that stores in a folder and in Redis keep alike, and the texts that name stores.
#include <atomic>
#include <thread>
#include <vector>

#include "load/temporary_folder.h"
#include "rendezvous/store_helpers.h"

namespace heddle::testing_rendezvous {

void expect_keys_are_written_once(const MakeStore& make) {
  const auto mine = make(0, "world"), other = make(1, "world"), elsewhere = make(0, "world/2");
  EXPECT_EQ(get(*other, {0, "a"}), "-");
  EXPECT_TRUE(set(*mine, {0, "a"}, "first"));
  EXPECT_FALSE(set(*mine, {0, "a"}, "second"));
  EXPECT_EQ(get(*mine, {0, "a"}), "first");
  EXPECT_EQ(get(*other, {0, "a"}), "first");
  EXPECT_EQ(get(*other, {1, "a"}), "-") << "a key is a rank's own";
  EXPECT_EQ(get(*elsewhere, {0, "a"}), "-") << "a store is a communicator's own";
  bool written = true;
  expect_error(other->set({0, "b"}, "x", &written), HEDDLE_ERROR_INVALID, {"rank 1 can not write 'b' of rank 0", other->where()});

  const std::string bytes("\0 \n\r\xff%/..\0", 10);
  std::string large(300000, 'x');
  for (const std::string& value : {bytes, large, std::string()}) {
    const std::string name = "value/" + std::to_string(value.size());
    EXPECT_TRUE(set(*mine, {0, name}, value));
    EXPECT_TRUE(get(*other, {0, name}) == value);
  }
  for (const std::string name : {"..", ".", "a/b", "a%2fb", "%", "", " ", "\xc3\xa9", "here/0123/1"}) {
    EXPECT_TRUE(set(*mine, {0, name}, "of " + name)) << name;
    EXPECT_EQ(get(*other, {0, name}), "of " + name);
  }
}

void expect_one_of_many_threads_writes(const MakeStore& make) {
  const auto shared = make(0, "world");
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> wrote{0}, begun{0};
    std::atomic<int> winner{-1};
    std::vector<std::thread> threads;
    const Key key{0, "round " + std::to_string(round)};
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] {
        // Half of them have a store of their own, as processes have.
        const auto own = i % 2 == 0 ? make(0, "world") : nullptr;
        for (++begun; begun < 8;) std::this_thread::yield();
        if (set(own ? *own : *shared, key, std::string(10000, static_cast<char>('a' + i)))) ++wrote, winner = i;
      });
    std::atomic<bool> done{false};
    std::thread reader([&] {
      while (!done) {
        const std::string value = get(*shared, key);
        EXPECT_TRUE(value == "-" || value == std::string(10000, value[0])) << "half a value is seen";
      }
    });
    for (std::thread& thread : threads) thread.join();
    done = true;
    reader.join();
    EXPECT_EQ(wrote, 1);
    EXPECT_EQ(get(*shared, key), std::string(10000, static_cast<char>('a' + winner)));
  }
}

void expect_waits_end(const MakeStore& make) {
  const auto mine = make(0, "world"), other = make(1, "world");
  std::string value;
  expect_error(other->wait({0, "late"}, &value, patience(std::chrono::milliseconds(30))), HEDDLE_ERROR_DEVICE,
               {"rank 0 has not written 'late'", other->where()});
  std::atomic<int> asked{0};
  const std::function<bool()> cancelled = [&] { return ++asked > 2; };
  EXPECT_EQ(other->wait({0, "late"}, &value, {std::chrono::steady_clock::now() + std::chrono::hours(1), cancelled}).code,
            HEDDLE_ERROR_CANCELLED);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_TRUE(set(*mine, {0, "late"}, "there"));
  });
  EXPECT_OK(other->wait({0, "late"}, &value, patience()));
  EXPECT_EQ(value, "there");
  writer.join();
}

TEST(RendezvousText, SaysItsFormsWhenItIsNone) {
  std::unique_ptr<Store> store;
  for (const char* text : {"", "file", "file:", "local:job", "redis", "mpi", "pmix:1", "tcp:host:1", "FILE:/tmp"})
    expect_error(make_store(text, "world", 0, 2, &store), HEDDLE_ERROR_INVALID,
                 {"'" + std::string(text) + "' is no rendezvous", "file:DIR, redis:HOST:PORT, redis:HOST:PORT/NAME or pmix"});
  for (const char* text : {"redis:", "redis:host", "redis:host:", "redis::6379", "redis:host:0", "redis:host:65536", "redis:host:-1",
                           "redis:host:6379x", "redis:host:6379/", "redis:::1:6379", "redis:[::1]", "redis:[]:6379", "redis:host: 6379"})
    expect_error(make_store(text, "world", 0, 2, &store), HEDDLE_ERROR_INVALID,
                 {"'" + std::string(text) + "' is no rendezvous", "redis:HOST:PORT or redis:HOST:PORT/NAME"});
  EXPECT_EQ(store, nullptr);
}

TEST(RendezvousText, WithAPasswordIsNotRepeated) {
  std::unique_ptr<Store> store;
  const Status status = make_store("redis:me:secret@host:6379", "world", 0, 2, &store);
  expect_error(status, HEDDLE_ERROR_INVALID, {"HEDDLE_REDIS_PASSWORD"});
  EXPECT_EQ(status.text.find("secret"), std::string::npos) << status.text;
}

TEST(RendezvousText, RanksAreCountedFromZero) {
  const testing::TemporaryFolder folder;
  std::unique_ptr<Store> store;
  for (const auto& [rank, ranks] : {std::pair(2, 2), std::pair(-1, 2), std::pair(0, 0)})
    expect_error(make_store("file:" + folder.path().string(), "world", rank, ranks, &store), HEDDLE_ERROR_INVALID,
                 {"rank " + std::to_string(rank) + " is none of " + std::to_string(ranks)});
}

TEST(RendezvousText, OfPmixNeedsALauncher) {
  if (std::getenv("PMIX_RANK")) GTEST_SKIP() << "a launcher has started this test";
  std::unique_ptr<Store> store;
  expect_error(make_store("pmix", "world", 0, 2, &store), HEDDLE_ERROR_DEVICE, {"mpirun -n N", "srun --mpi=pmix"});
}

}  // namespace heddle::testing_rendezvous
