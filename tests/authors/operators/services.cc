// Resources: a thread that works for an asynchronous operator, and a table that two operators share.
#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

// A step that waits for the worker; it is in the step's own scratch, so that nothing is allocated for it.
struct Job {
  Completion done;
  const uint8_t* bytes;
  uint64_t size;
  uint32_t* result;
  uint32_t (*next)(uint32_t sum, const uint8_t* bytes, uint64_t size);
  Job* behind;
};

class Worker {
 public:
  explicit Worker(const ResourceRequest&) : thread_([this] { work(); }) {}
  ~Worker() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  void add(Job* job) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      Job** last = &first_;
      while (*last) last = &(*last)->behind;
      *last = job;
    }
    wake_.notify_one();
  }
  // Ends a job early. If it is already done, its memory is not touched.
  void drop(const Job* job) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (job == current_) drops_current_ = true;
    Job** at = &first_;
    while (*at && *at != job) at = &(*at)->behind;
    if (!*at) return;
    *at = job->behind;
    lock.unlock();
    job->done(cancelled());
  }

 private:
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return ends_ || first_; });
      if (!first_) return;
      current_ = first_;
      first_ = current_->behind;
      const Job job = *current_;
      uint32_t sum = *job.result;
      for (uint64_t at = 0; at < job.size && !drops_current_;) {
        const uint64_t piece = std::min<uint64_t>(job.size - at, 1 << 20);
        lock.unlock();
        sum = job.next(sum, job.bytes + at, piece);
        at += piece;
        lock.lock();
      }
      const Status status = drops_current_ ? cancelled() : Status();
      drops_current_ = false;
      current_ = nullptr;
      *job.result = sum;
      lock.unlock();
      job.done(status);
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  Job* first_ = nullptr;
  Job* current_ = nullptr;
  bool drops_current_ = false, ends_ = false;
  std::thread thread_;
};

constexpr std::array<uint32_t, 256> crc_table() {
  std::array<uint32_t, 256> table = {};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0u);
    table[i] = value;
  }
  return table;
}
uint32_t crc32(uint32_t sum, const uint8_t* bytes, uint64_t size) {
  static constexpr std::array<uint32_t, 256> table = crc_table();
  sum = ~sum;
  for (uint64_t i = 0; i < size; ++i) sum = (sum >> 8) ^ table[(sum ^ bytes[i]) & 255];
  return ~sum;
}
uint32_t adler32(uint32_t sum, const uint8_t* bytes, uint64_t size) {
  uint32_t a = sum & 0xFFFF, b = sum >> 16;
  for (uint64_t i = 0; i < size; ++i) {
    a = (a + bytes[i]) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

Status infer_checksum(InferContext& c) {
  const std::string kind = c.attributes.s("kind");
  return kind == "crc32" || kind == "adler32" ? Status() : invalid("kind is \"" + kind + "\", expected \"crc32\" or \"adler32\"");
}

class Checksum {
 public:
  Status create(const CreateContext& c) {
    is_adler_ = c.attributes.s("kind") == "adler32";
    return worker_.ask(c, "authors.worker");
  }
  Status prepare(PrepareContext& c) {
    c.set_scratch(sizeof(Job));
    return {};
  }
  Status start(const RunContext& c, Completion done) const {
    const heddle_tensor& x = *c.inputs[0];
    uint32_t* const result = output<uint32_t>(c, 0).data;
    *result = is_adler_ ? 1 : 0;
    worker_(c)->add(new (c.scratch)
                        Job{done, static_cast<const uint8_t*>(x.data), x.byte_size, result, is_adler_ ? adler32 : crc32, nullptr});
    return {};
  }
  void abort(const RunContext& c) const { worker_(c)->drop(step_scratch<Job>(c)); }

 private:
  Needed<Worker> worker_;
  bool is_adler_ = false;
};

// The resource "authors.primes": the primes below 65536.
struct Primes {
  const int64_t* values;
  int64_t count;
};
class Sieve : public Primes {
 public:
  explicit Sieve(const ResourceRequest&) {
    std::vector<char> is_composite(65536, 0);
    for (size_t n = 2; n < is_composite.size(); ++n) {
      if (is_composite[n]) continue;
      found_.push_back(static_cast<int64_t>(n));
      for (size_t k = n * n; k < is_composite.size(); k += n) is_composite[k] = 1;
    }
    values = found_.data();
    count = static_cast<int64_t>(found_.size());
  }

 private:
  std::vector<int64_t> found_;
};

class WithPrimes {
 public:
  Status create(const CreateContext& c) { return primes_.ask(c, "authors.primes"); }
  Status prepare(PrepareContext& c) {
    elements_ = Tiles::of(c.output(0)->element_count, 256);
    c.set_tiles(elements_.count());
    return {};
  }

 protected:
  Needed<Primes> primes_;
  Tiles elements_;
};

template <class T>
class IsPrime : public WithPrimes {
 public:
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> x = input<T>(c, 0);
    const Out<bool> y = output<bool>(c, 0);
    const Primes& primes = *primes_(c);
    for (const int64_t i : elements_.elements(begin, end)) {
      const int64_t n = x[i];
      if (n > int64_t{1} << 32) return invalid("element " + std::to_string(i) + " is " + std::to_string(n) + ", more than 2^32");
      bool is_prime = n > 1;
      for (int64_t k = 0; is_prime && k < primes.count && primes.values[k] * primes.values[k] <= n; ++k)
        is_prime = n % primes.values[k] != 0;
      y[i] = is_prime;
    }
    return {};
  }
};

class NthPrime : public WithPrimes {
 public:
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<int64_t> n = input<int64_t>(c, 0);
    const Out<int64_t> y = output<int64_t>(c, 0);
    const Primes& primes = *primes_(c);
    for (const int64_t i : elements_.elements(begin, end)) {
      if (n[i] < 1 || n[i] > primes.count)
        return invalid("element " + std::to_string(i) + " is " + std::to_string(n[i]) + ", expected 1 to " + std::to_string(primes.count));
      y[i] = primes.values[n[i] - 1];
    }
    return {};
  }
};

}  // namespace

HEDDLE_PLUGIN("authors_services", "1.0", plugin) {
  plugin.resource<Worker>("authors.worker", HEDDLE_SCOPE_RUNTIME, 1);
  plugin.resource<Sieve, Primes>("authors.primes", HEDDLE_SCOPE_SESSION, 1);
  plugin.add(
      Op("Checksum", "authors")
          .doc("a checksum of the bytes of x, computed on a thread of its own")
          .in("x")
          .out_as("sum", HEDDLE_U32, scalar())
          .attribute("kind", "crc32")
          .infer(infer_checksum)
          .example("u8[9] = 49 50 51 52 53 54 55 56 57 -> u32[] = 3421780262", "CRC-32's check value, of \"123456789\"")
          .example("u8[9] = 87 105 107 105 112 101 100 105 97; kind=\"adler32\" -> u32[] = 300286872", "zlib: adler32 of \"Wikipedia\"")
          .example("u8[1] = 1 -> u32[] = 2768625435", "zlib: of one byte")
          .example("i32[1] = 1 -> u32[] = 2583214201", "zlib: of four bytes")
          .example("i32[0] -> u32[] = 0", "zlib: crc32 of nothing")
          .cpu<Checksum>());
  plugin.add(Op("IsPrime", "authors")
                 .doc("whether x is a prime; up to 2^32")
                 .in("x", dtypes<int32_t, int64_t>())
                 .out_as("y", HEDDLE_BOOL, same_as("x"))
                 .example("i32[2,4] = -7 0 1 2 91 97 65535 65537 -> bool[2,4] = 0 0 0 1 0 1 0 1", "by hand")
                 .example("i64[2] = 4294967291 4294967295 -> bool[2] = 1 0", "2^32 - 5 is the largest prime below 2^32")
                 .cpu<IsPrime<int32_t>>({dtypes<int32_t>()})
                 .cpu<IsPrime<int64_t>>({dtypes<int64_t>()}));
  plugin.add(Op("NthPrime", "authors")
                 .doc("the n-th prime, 2 is the first")
                 .in("n", dtypes<int64_t>())
                 .out("y", same_as("n"))
                 .example("i64[4] = 1 2 10 6542 -> i64[4] = 2 3 29 65521", "by hand; there are 6542 primes below 65536")
                 .cpu<NthPrime>());
}
