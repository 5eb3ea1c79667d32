// The store of the launcher's PMIx servers: it has the keys of one job and ends with it. PMIx itself lets a process put a key again.
#include <pmix.h>

#include <mutex>
#include <utility>

#include "rendezvous/key_text.h"
#include "rendezvous/pmix_client.h"
#include "rendezvous/stores.h"

namespace heddle::rendezvous {
namespace {

// PMIx's calls are safe on any thread, but put() is two of them and more: those of all stores of the process are one after the other.
std::mutex& putting() {
  static std::mutex mutex;
  return mutex;
}

class PmixStore final : public Store {
 public:
  PmixStore(const std::string& communicator, int32_t rank) : Store(rank), prefix_("heddle/" + escaped(communicator) + "/") {}

  Status make(int32_t ranks) {
    HEDDLE_PLUGIN_CHECK(pmix_client(&self_));
    int32_t job = 0;
    HEDDLE_PLUGIN_CHECK(pmix_job_size(self_, &job));
    if (self_.rank != static_cast<pmix_rank_t>(rank_) || ranks > job)
      return plugin::invalid("the launcher started " + std::to_string(job) + " processes, of which this is rank " +
                             std::to_string(self_.rank) + " (PMIx), and not rank " + std::to_string(rank_) + " of " +
                             std::to_string(ranks) + ": give it that rank, or leave ranks to the launcher");
    return {};
  }

  Status get(const Key& key, std::string* value, bool* found) override {
    *found = false;
    HEDDLE_PLUGIN_CHECK(check_name(key));
    pmix_proc_t owner = self_;
    owner.rank = static_cast<pmix_rank_t>(key.rank);
    return pmix_get(owner, prefix_ + key.name, value, found);
  }

  std::string where() const override { return std::string("pmix (job ") + self_.nspace + ")"; }

 protected:
  Status put(const Key& key, const std::string& value, bool* written) override {
    *written = false;
    HEDDLE_PLUGIN_CHECK(check_name(key));
    const std::lock_guard<std::mutex> lock(putting());
    std::string there;
    bool found = false;
    HEDDLE_PLUGIN_CHECK(get(key, &there, &found));
    if (found) return {};
    std::string copy = value;
    pmix_value_t put{};
    put.type = PMIX_BYTE_OBJECT;
    put.data.bo = {copy.data(), copy.size()};
    pmix_status_t status = ::PMIx_Put(PMIX_GLOBAL, (prefix_ + key.name).c_str(), &put);
    if (status == PMIX_SUCCESS) status = ::PMIx_Commit();
    if (status != PMIX_SUCCESS) return failed("write '" + key.name + "'", status);
    *written = true;
    return {};
  }

 private:
  Status check_name(const Key& key) const {
    if ((prefix_ + key.name).size() <= PMIX_MAX_KEYLEN && key.name.find('\0') == std::string::npos) return {};
    return plugin::invalid("the key '" + prefix_ + key.name + "' is too long for PMIx: give the communicator a shorter name");
  }
  static Status failed(const std::string& what, pmix_status_t status) {
    return {HEDDLE_ERROR_DEVICE,
            "can not " + what + " by PMIx: " + ::PMIx_Error_string(status) + "; see whether the launcher of the job still runs"};
  }

  const std::string prefix_;
  pmix_proc_t self_{};
};

}  // namespace

Status make_pmix_store(const std::string& communicator, int32_t rank, int32_t ranks, std::unique_ptr<Store>* store) {
  auto made = std::make_unique<PmixStore>(communicator, rank);
  HEDDLE_PLUGIN_CHECK(made->make(ranks));
  *store = std::move(made);
  return {};
}

}  // namespace heddle::rendezvous
