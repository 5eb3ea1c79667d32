// The rows of trainers and datasets in the table of public calls.
#include "trainer_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "failing_allocations.h"

namespace heddle::testing_memory {
namespace {

using Arrays = std::vector<std::pair<std::string, TensorView>>;

template <class T>
T value_of(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.status().text();
  return std::move(*result);
}

Arrays arrays_of(const World& world) {
  const std::vector<TensorView> views = world.line_inputs();
  return {{"x", views[0]}, {"y", views[1]}};
}

TrainerOptions two_steps(const World& world) {
  TrainerOptions options;
  options.checkpoints.folder = world.folder.path().string();
  options.best.mean = "perplexity";
  options.metrics = {"perplexity:loss"};
  options.steps = 2;
  options.batch = 3;  // of four samples: in an order of their own
  return options;
}

struct Trained {
  explicit Trained(const World& w)
      : world(w),
        session(w.learning()),
        data(value_of(Dataset::of_arrays(arrays_of(w)))),
        test(value_of(session.net("line"))),
        trainer(value_of(Trainer::create(value_of(session.net("train")), data, two_steps(w)))) {}
  const World& world;
  const std::string folder = world.folder.path().string();
  Session session;
  std::shared_ptr<const Dataset> data;
  Session test;
  Trainer trainer;
};

// The samples of the world's arrays, of which the second one can not be read.
class OneBadSample final : public Dataset {
 public:
  explicit OneBadSample(std::shared_ptr<const Dataset> all) : all_(std::move(all)) {}
  const std::vector<std::string>& names() const override { return all_->names(); }
  int64_t samples() const override { return all_->samples(); }
  Status read(const BatchRequest& request, Batch& batch) const override {
    if (std::find(request.samples, request.samples + request.count, 1) != request.samples + request.count)
      return {Code::file_corrupt, "its third byte is wrong, which only a text as long as this one can explain"};
    return all_->read(request, batch);
  }

 private:
  const std::shared_ptr<const Dataset> all_;
};

// A step that leaves out a sample, which it finds on the thread that trains.
void add_step_with_bad_sample(std::vector<PublicCall>& calls) {
  calls.push_back({"Trainer::step", "a sample can't be read", false, [](const std::shared_ptr<World>& w) -> Call {
                     const auto trained = std::make_shared<Trained>(*w);
                     TrainerOptions options = two_steps(*w);
                     options.batch = 4;
                     options.reader_threads = 0;
                     options.max_bad_samples = 1;
                     const auto trainer = std::make_shared<Trainer>(value_of(
                         Trainer::create(value_of(trained->session.net("train")), std::make_shared<OneBadSample>(trained->data), options)));
                     return [w, trained, trainer] {
                       const auto made = trainer->step();
                       const Unwatched unwatched;
                       return Answer{made.status(), !made.ok() || (made->samples == 3 && trainer->bad_samples() == 1)};
                     };
                   }});
}

template <class Function>
void on_trainer(std::vector<PublicCall>& calls, const char* name, bool plain, bool tests, const Function& function) {
  calls.push_back({name, "", plain, [function, tests](const std::shared_ptr<World>& w) -> Call {
                     const auto trained = std::make_shared<Trained>(*w);
                     if (tests) {
                       EXPECT_TRUE(trained->trainer.test_with(trained->test, trained->data).ok());
                     }
                     return [w, trained, function] { return function(*trained); };
                   }});
}

void add_batch_calls(std::vector<PublicCall>& calls) {
  const auto on_batch = [&](const char* name, bool plain, const std::function<Answer(Batch&)>& function) {
    calls.push_back({name, "", plain, [function](const std::shared_ptr<World>&) -> Call {
                       return [function] {
                         Batch batch;
                         return function(batch);
                       };
                     }});
  };
  on_batch("Batch::Batch", true, [](Batch& batch) -> Answer {
    const Batch moved(std::move(batch));
    return {{}, moved.values().empty()};
  });
  on_batch("Batch::operator=", true, [](Batch& batch) -> Answer {
    Batch other;
    other = std::move(batch);
    return {{}, other.values().empty()};
  });
  on_batch("Batch::values", true, [](Batch& batch) -> Answer { return {{}, batch.values().empty()}; });
  on_batch("Batch::owned_bytes", true, [](Batch& batch) -> Answer { return {{}, batch.owned_bytes() == 0}; });
  on_batch("Batch::make", false, [](Batch& batch) -> Answer {
    const auto made = batch.make(2, DType::f32, Shape{5});
    return {made.status(), !made.ok() || batch.owned_bytes() == 20};
  });
  on_batch("Batch::refer", false, [](Batch& batch) -> Answer {
    static float number = 1;
    Status status = batch.refer(1, {DType::f32, Shape{1}, &number});
    const bool ok = status.ok();
    return {std::move(status), !ok || batch.values()[1].data == &number};
  });
}

}  // namespace

std::string checkpoint_of_line(const World& world) {
  Trained trained(world);
  EXPECT_TRUE(trained.trainer.save_checkpoint().ok());
  return (world.folder / "step-000000000.safetensors").string();
}

void add_trainer_calls(std::vector<PublicCall>& calls) {
  add_batch_calls(calls);
  add_step_with_bad_sample(calls);
  calls.push_back({"Dataset::of_arrays", "", false, [](const std::shared_ptr<World>& w) -> Call {
                     return [w] {
                       Arrays arrays;
                       {
                         const Unwatched unwatched;
                         arrays = arrays_of(*w);
                       }
                       auto made = Dataset::of_arrays(std::move(arrays));
                       const Unwatched unwatched;
                       return Answer{made.status(), !made.ok() || (*made)->samples() == 4};
                     };
                   }});
  calls.push_back({"Dataset::identity", "", true, [](const std::shared_ptr<World>& w) -> Call {
                     const auto data = std::make_shared<std::shared_ptr<const Dataset>>(Trained(*w).data);
                     return [w, data]() -> Answer { return {{}, (*data)->identity().empty()}; };
                   }});
  calls.push_back({"Dataset::sample_name", "", true, [](const std::shared_ptr<World>& w) -> Call {
                     return [w, data = value_of(Dataset::of_arrays(arrays_of(*w)))]() -> Answer {
                       return {{}, data->sample_name(1234567890123456789) == "1234567890123456789"};
                     };
                   }});
  calls.push_back({"Trainer::create", "", false, [](const std::shared_ptr<World>& w) -> Call {
                     const auto trained = std::make_shared<Trained>(*w);
                     return [w, trained, net = value_of(trained->session.net("train")), options = two_steps(*w)] {
                       auto made = Trainer::create(net, trained->data, options);
                       const Unwatched unwatched;
                       return Answer{made.status(), !made.ok() || made->total_steps() == 2};
                     };
                   }});
  on_trainer(calls, "Trainer::Trainer", true, false, [](Trained& t) -> Answer {
    Trainer moved(std::move(t.trainer));
    t.trainer = std::move(moved);
    return {{}, t.trainer.steps() == 0};
  });
  on_trainer(calls, "Trainer::operator=", true, false, [](Trained& t) -> Answer {
    Trainer moved(std::move(t.trainer));
    t.trainer = std::move(moved);
    return {{}, t.trainer.steps() == 0};
  });
  on_trainer(calls, "Trainer::test_with", false, false, [](Trained& t) -> Answer { return {t.trainer.test_with(t.test, t.data)}; });
  on_trainer(calls, "Trainer::prepare", false, false, [](Trained& t) -> Answer {
    Status status = t.trainer.prepare();
    return {std::move(status), t.trainer.steps() == 0};
  });
  on_trainer(calls, "Trainer::run", false, true, [](Trained& t) -> Answer {
    Status status = t.trainer.run();
    const bool ok = status.ok();
    return {std::move(status), !ok || t.trainer.steps() == 2};
  });
  on_trainer(calls, "Trainer::step", false, false, [](Trained& t) -> Answer {
    const auto made = t.trainer.step();
    const Unwatched unwatched;
    return {made.status(), !made.ok() || made->step == t.trainer.steps()};
  });
  on_trainer(calls, "Trainer::evaluate", false, true, [](Trained& t) -> Answer {
    const auto made = t.trainer.evaluate();
    const Unwatched unwatched;
    return {made.status(), !made.ok() || made->means.size() == 2};
  });
  on_trainer(calls, "Trainer::save_checkpoint", false, false, [](Trained& t) -> Answer { return {t.trainer.save_checkpoint()}; });
  // A checkpoint that another trainer has written.
  const auto on_checkpoint = [&](const char* name, const std::function<Answer(Trained&, const std::string&)>& function) {
    calls.push_back({name, "", false, [function](const std::shared_ptr<World>& w) -> Call {
                       const auto trained = std::make_shared<Trained>(*w);
                       EXPECT_TRUE(trained->trainer.save_checkpoint().ok());
                       return [w, trained, path = (w->folder / "step-000000000.safetensors").string(), function] {
                         return function(*trained, path);
                       };
                     }});
  };
  on_checkpoint("Trainer::resume", [](Trained& t, const std::string& path) -> Answer {
    const auto info = t.trainer.resume(path);
    const Unwatched unwatched;
    return {info.status(), !info.ok() || info->batch == 3};
  });
  on_checkpoint("read_checkpoint_info", [](Trained&, const std::string& path) -> Answer {
    const auto info = read_checkpoint_info(path);
    const Unwatched unwatched;
    return {info.status(), !info.ok() || info->batch == 3};
  });
  on_checkpoint("list_checkpoints", [](Trained& t, const std::string&) -> Answer {
    const auto list = list_checkpoints(t.folder);
    const Unwatched unwatched;
    return {list.status(), !list.ok() || (!list->complete.empty() && list->damaged.empty())};
  });
  on_trainer(calls, "Trainer::wait_for_ranks", true, false, [](Trained& t) -> Answer { return {t.trainer.wait_for_ranks()}; });
  on_trainer(calls, "Trainer::restore_best", false, true, [](Trained& t) -> Answer {
    if (!t.trainer.best()) {
      const auto made = t.trainer.evaluate();
      if (!made.ok()) return {made.status()};
    }
    return {t.trainer.restore_best()};
  });
  on_trainer(calls, "Trainer::net_checksum", true, false, [](Trained& t) -> Answer { return {{}, t.trainer.net_checksum().size() == 16}; });
  on_trainer(calls, "Trainer::best", true, false, [](Trained& t) -> Answer { return {{}, !t.trainer.best()}; });
  on_trainer(calls, "Trainer::is_stopped_early", true, false, [](Trained& t) -> Answer { return {{}, !t.trainer.is_stopped_early()}; });
  on_trainer(calls, "Trainer::cancel", true, false, [](Trained& t) -> Answer {
    t.trainer.cancel();
    return {{}, t.trainer.step().status().code() == Code::cancelled};
  });
  on_trainer(calls, "Trainer::test_means", false, true, [](Trained& t) -> Answer {
    const auto names = t.trainer.test_means();
    const Unwatched unwatched;
    return {names.status(), !names.ok() || !names->empty()};
  });
  on_trainer(calls, "Trainer::bad_samples", true, false, [](Trained& t) -> Answer { return {{}, t.trainer.bad_samples() == 0}; });
  on_trainer(calls, "Trainer::steps", true, false, [](Trained& t) -> Answer { return {{}, t.trainer.steps() == 0}; });
  on_trainer(calls, "Trainer::total_steps", true, false, [](Trained& t) -> Answer { return {{}, t.trainer.total_steps() == 2}; });
  on_trainer(calls, "Trainer::plan", true, false, [](Trained& t) -> Answer { return {{}, t.trainer.plan() == nullptr}; });
}

}  // namespace heddle::testing_memory
