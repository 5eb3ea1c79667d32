// Operators that work with the ranks of a communicator: an asynchronous kernel for the host, and one that blocks, which devices launch that
// launch the host's kernels. The ranks are threads of one process, as a test arranges it (peers.h).
#include "peers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

struct Comm {
  std::unique_ptr<PeersMember> member;
};

// A communicator of one rank, for programs without a world.
class Alone final : public PeersMember {
 public:
  void start(const float* mine, float* sum, int64_t count, std::function<void(const std::string&)> done) override {
    std::copy(mine, mine + count, sum);
    done("");
  }
  void abort(const std::string&) override { aborted_ = true; }
  std::vector<std::string> exchange(const std::string& mine) override { return {mine}; }
  std::string broken() override { return aborted_ ? "aborted" : ""; }

 private:
  std::atomic<bool> aborted_{false};
};

class OwnComm : public Comm {
 public:
  explicit OwnComm(const ResourceRequest& request) {
    std::this_thread::sleep_for(std::chrono::milliseconds(request.option("create_ms")->i));
    const std::string rendezvous = request.rendezvous();
    if (rendezvous.empty() && request.size() == 1) {
      member = std::make_unique<Alone>();
      return;
    }
    if (rendezvous.rfind("world:", 0) != 0) throw std::runtime_error("the rendezvous is \"" + rendezvous + "\", and not world:ADDRESS");
    PeersWorld::Joining joining;
    joining.communicator = request.communicator();
    joining.rank = request.rank();
    joining.size = request.size();
    joining.attempt = request.attempt();
    joining.members = request.members();
    joining.timeout_ns = request.timeout_ns();
    joining.deadline_ns = request.deadline_ns();
    joining.cancelled = [request] { return request.cancelled(); };
    member = reinterpret_cast<PeersWorld*>(std::stoull(rendezvous.substr(6)))->join(joining);
  }
  void abort(const char* why) { member->abort(why); }
  Status exchange(const void* mine, uint64_t bytes, void* all, int64_t) {
    char* to = static_cast<char*>(all);
    for (const std::string& given : member->exchange({static_cast<const char*>(mine), bytes}))
      std::memcpy(std::exchange(to, to + bytes), given.data(), bytes);
    return {};
  }
  Status poll_error() const {
    const std::string why = member->broken();
    return why.empty() ? Status() : invalid(why);
  }
};

class UsesComm {
 public:
  Status create(const CreateContext& context) {
    heddle_attribute option = {};
    option.struct_size = sizeof(option);
    option.type = HEDDLE_ATTRIBUTE_INT;
    option.name = "create_ms";
    option.i = context.attributes.i("create_ms");
    const heddle_attribute* const options[] = {&option};
    return comm_.ask(context, "peers.comm", 1, context.attributes.s("communicator").c_str(), options, 1);
  }

 protected:
  void begin(const RunContext& c, std::function<void(const std::string&)> done) const {
    const In<float> mine = input<float>(c, 0);
    comm_(c)->member->start(mine.data, output<float>(c, 0).data, static_cast<int64_t>(mine.size), std::move(done));
  }

 private:
  Needed<Comm> comm_;
};

// An operation that an abort of this rank has ended is cancelled: the run knows why it ends.
Status status_of_operation(const std::string& failure) {
  if (failure.empty()) return {};
  return failure.rfind("aborted", 0) == 0 ? Status{HEDDLE_ERROR_CANCELLED, failure} : invalid(failure);
}

class Starts : public UsesComm {
 public:
  Status start(const RunContext& c, Completion done) const {
    begin(c, [done](const std::string& failure) { done(status_of_operation(failure)); });
    return {};
  }
};

class Blocks : public UsesComm {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    struct State {
      std::mutex mutex;
      std::condition_variable changed;
      bool over = false;
      std::string failure;
    };
    const auto state = std::make_shared<State>();
    begin(c, [state](const std::string& failure) {
      const std::lock_guard<std::mutex> lock(state->mutex);
      state->over = true;
      state->failure = failure;
      state->changed.notify_all();
    });
    std::unique_lock<std::mutex> lock(state->mutex);
    state->changed.wait(lock, [&] { return state->over; });
    return status_of_operation(state->failure);
  }
};

class Fails {
 public:
  Status run(const RunContext&, int64_t, int64_t) const { return invalid("it fails, as it was to"); }
};

}  // namespace

HEDDLE_PLUGIN("peers", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "peers").in("x", dtypes<float>()).out("y", same_as("x"), dtypes<float>()); };
  plugin.resource<OwnComm, Comm>("peers.comm", HEDDLE_SCOPE_COMMUNICATOR, 1);
  // How long the making of the communicator takes, whatever the host says meanwhile, is an attribute.
  Op sum = op("Sum");
  sum.required("communicator", HEDDLE_ATTRIBUTE_STRING).traits(HEDDLE_TRAIT_COLLECTIVE);
  plugin.add(sum.attribute("create_ms", 0).cpu<Blocks>().cpu<Starts>().priority(1));
  plugin.add(op("Fails").cpu<Fails>());
}
