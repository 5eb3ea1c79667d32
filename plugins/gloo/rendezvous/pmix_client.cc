#include "rendezvous/pmix_client.h"

#include <unistd.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "rendezvous/pmix_place.h"

namespace heddle::rendezvous {

using plugin::Status;

namespace {

Status pmix_failed(const std::string& what, const std::string& why) {
  return {HEDDLE_ERROR_DEVICE, "can not " + what + " by PMIx: " + why};
}

// One question to the server. It lives until both who asks and PMIx, which answers on its own thread, have left it.
struct Question {
  pmix_proc_t owner{};
  std::string key;
  pmix_info_t how[2];
  std::mutex mutex;
  std::condition_variable changed;
  bool answered = false, found = false;
  pmix_status_t status = PMIX_SUCCESS;
  std::string value;
};

void take_answer(pmix_status_t status, pmix_value_t* value, void* data) {
  const std::unique_ptr<std::shared_ptr<Question>> question(static_cast<std::shared_ptr<Question>*>(data));
  const std::lock_guard<std::mutex> lock((*question)->mutex);
  (*question)->answered = true;
  (*question)->status = status;
  (*question)->found = status == PMIX_SUCCESS && value && value->type == PMIX_BYTE_OBJECT;
  if ((*question)->found) {
    (*question)->value.assign(value->data.bo.bytes, value->data.bo.size);
    // PMIx does not say whose the value is, and 4.2 forgets it. Its bytes are freed so that a version that frees all of it can do so.
    std::free(value->data.bo.bytes);
    value->data.bo = {nullptr, 0};
  }
  (*question)->changed.notify_all();
}

// How long the launcher may take to answer a process that connects. Open MPI 4.1 answers no more once another process was killed while it
// connected.
constexpr std::chrono::seconds time_to_connect(10);

// The connecting of this process, on a thread of its own. It lives until both who waits and that thread have left it.
struct Connecting {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  pmix_status_t status = PMIX_SUCCESS;
  pmix_proc_t self{};
};

class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  // A child that was forked has this object, but not the connection.
  ~Client() {
    if (process_ == ::getpid()) ::PMIx_Finalize(nullptr, 0);
  }

  Status connect(pmix_proc_t* self) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (process_ != 0 && process_ != ::getpid())
      return {HEDDLE_ERROR_DEVICE, "PMIx was used before this process was forked: use it in the process that the launcher started"};
    if (process_ == 0) HEDDLE_PLUGIN_CHECK(begin());
    *self = self_;
    return {};
  }

 private:
  Status begin() {
    if (!connecting_) {  // else an earlier call has given up
      connecting_ = std::make_shared<Connecting>();
      std::thread([one = connecting_] {
        pmix_proc_t self{};
        const pmix_status_t status = ::PMIx_Init(&self, nullptr, 0);
        const std::lock_guard<std::mutex> lock(one->mutex);
        one->over = true;
        one->status = status;
        one->self = self;
        one->changed.notify_all();
      }).detach();
    }
    const char* const hint = "; start the processes by `mpirun -n N ...` or `srun --mpi=pmix -n N ...`";
    const std::shared_ptr<Connecting> one = connecting_;
    std::unique_lock<std::mutex> lock(one->mutex);
    if (!one->changed.wait_for(lock, time_to_connect, [&] { return one->over; }))
      return {HEDDLE_ERROR_DEVICE,
              "the launcher's PMIx server does not answer within " + std::to_string(time_to_connect.count()) + " s" + hint};
    connecting_.reset();
    if (one->status != PMIX_SUCCESS)
      return {HEDDLE_ERROR_DEVICE, std::string("the launcher's PMIx server does not answer: ") + ::PMIx_Error_string(one->status) + hint};
    self_ = one->self;
    process_ = ::getpid();
    return {};
  }

  std::mutex mutex_;
  pid_t process_ = 0;  // that has the connection; 0: none yet
  pmix_proc_t self_{};
  std::shared_ptr<Connecting> connecting_;  // null: nothing is under way
};

// Reads a number of the environment.
bool read_number(const char* variable, int32_t* number) {
  const char* const text = std::getenv(variable);
  if (!text) return false;
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, *number);
  return error == std::errc() && rest == end && *number >= 0;
}

}  // namespace

bool started_by_pmix() {
  return std::getenv("PMIX_RANK") && std::getenv("PMIX_NAMESPACE");
}

Status pmix_client(pmix_proc_t* self) {
  if (!started_by_pmix())
    return {HEDDLE_ERROR_DEVICE,
            "no launcher that speaks PMIx started this process: start the processes by `mpirun -n N ...` or `srun --mpi=pmix -n N ...`"};
  static Client client;
  return client.connect(self);
}

Status pmix_job_size(const pmix_proc_t& self, int32_t* ranks) {
  pmix_proc_t job = self;
  job.rank = PMIX_RANK_WILDCARD;
  pmix_value_t* value = nullptr;
  const pmix_status_t status = ::PMIx_Get(&job, PMIX_JOB_SIZE, nullptr, 0, &value);
  if (status != PMIX_SUCCESS || !value)
    return {HEDDLE_ERROR_DEVICE,
            std::string("the launcher does not say by PMIx how many processes the job has: ") + ::PMIx_Error_string(status)};
  *ranks = static_cast<int32_t>(value->data.uint32);
  PMIX_VALUE_RELEASE(value);
  return {};
}

Status pmix_get(const pmix_proc_t& owner, const std::string& key, std::string* value, bool* found) {
  *found = false;
  const std::string what = "read '" + key + "' of rank " + std::to_string(owner.rank);
  // PMIX_TIMEOUT is kept by the server, which may hang itself: it is this thread that looks at the time.
  const auto question = std::make_shared<Question>();
  question->owner = owner;
  question->key = key;
  bool yes = true;
  size_t count = 0;
  PMIX_INFO_LOAD(&question->how[count++], PMIX_IMMEDIATE, &yes, PMIX_BOOL);  // do not wait for the key
#ifdef PMIX_GET_REFRESH_CACHE
  PMIX_INFO_LOAD(&question->how[count++], PMIX_GET_REFRESH_CACHE, &yes, PMIX_BOOL);  // keys come after others of that rank were read
#endif
  auto data = std::make_unique<std::shared_ptr<Question>>(question);
  const pmix_status_t asked = ::PMIx_Get_nb(&question->owner, question->key.c_str(), question->how, count, take_answer, data.get());
  std::unique_lock<std::mutex> lock(question->mutex);
  if (asked == PMIX_SUCCESS) {
    static_cast<void>(data.release());  // it is take_answer's
    if (!question->changed.wait_for(lock, std::chrono::seconds(2), [&] { return question->answered; }))
      return pmix_failed(what, "the launcher of the job does not answer within 2 seconds");
  }
  const pmix_status_t status = asked == PMIX_SUCCESS ? question->status : asked;
  // A key is not there either when the server is gone. Only functions that send something say that.
  if (status == PMIX_ERR_NOT_FOUND)
    return ::PMIx_Commit() == PMIX_ERR_UNREACH ? pmix_failed(what, "the launcher of the job has ended") : Status();
  if (status != PMIX_SUCCESS) return pmix_failed(what, ::PMIx_Error_string(status));
  *found = question->found;
  if (*found) *value = question->value;
  return {};
}

Status pmix_place(int32_t* rank, int32_t* ranks) {
  for (const char* const size : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (started_by_pmix() && read_number("PMIX_RANK", rank) && read_number(size, ranks) && *rank < *ranks) return {};
  pmix_proc_t self{};
  HEDDLE_PLUGIN_CHECK(pmix_client(&self));
  HEDDLE_PLUGIN_CHECK(pmix_job_size(self, ranks));
  *rank = static_cast<int32_t>(self.rank);
  return {};
}

}  // namespace heddle::rendezvous
