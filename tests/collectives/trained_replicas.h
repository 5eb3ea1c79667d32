// Nets that are trained on any number of devices or ranks, and all that these have afterwards.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "collectives/participants.h"
#include "heddle/training.h"
#include "net/batch_parts.h"
#include "session_plan.h"

namespace heddle::testing_collectives {

// A training of a crew: each step has a batch of each input.
struct Job {
  Net net;
  TrainingOptions how;
  std::vector<Arrays> steps;  // inputs by step
};

struct Trained {
  Status status;
  std::map<std::string, Array> variables;              // those of the session, by name
  std::map<std::string, std::vector<Array>> replicas;  // by the name of the first: what the others have
  std::vector<Arrays> outputs;                         // by step
  std::map<std::string, int> on_host;                  // the types of the steps that the host did, of the last plan; how many of each
  std::set<int32_t> classes_of_groups;                 // of the streams on which it launches collectives
  std::set<std::string> kernels_of_groups;             // which it launches
};

inline std::vector<std::string> devices_of(const Crew& crew) {
  std::vector<std::string> devices;
  for (int d = 0; d < crew.size && crew.devices; ++d) devices.push_back(crew.device(d));
  return devices;
}

namespace detail {

inline Array variable(const Session& session, const std::string& name, Status* status) {
  const auto read = session.read_variable(name);
  if (!read.ok()) return *status = read.status(), Array();
  return copy_of(*read);
}

// Reads the variables of a session and of their replicas.
inline Status read_variables(const Session& session, const Net& net, Trained* trained) {
  Status status;
  for (const std::string& name : session.variables()) trained->variables[name] = variable(session, name, &status);
  for (const Variable& v : net.variables)
    if (!v.replica_of.empty()) trained->replicas[v.replica_of].push_back(variable(session, v.name, &status));
  return status;
}

}  // namespace detail

// The net that trains `job` on a crew.
inline heddle::Result<Nets> training_nets(const Runtime& runtime, const Crew& crew, const Job& job) {
  TrainingOptions how = job.how;
  how.parallel.communicator = world;
  how.parallel.devices = devices_of(crew);
  if (!crew.devices) how.parallel.ranks = crew.size;
  std::vector<Net> all;
  all.push_back(job.net);
  HEDDLE_TRY(Nets nets, Nets::of(std::move(all)));
  HEDDLE_CHECK(nets.add_training(runtime, job.net.name, how, job.net.name));
  return nets;
}

// A rank's part of a batch.
inline TensorView rows_of_rank(const Array& input, int rank, int ranks) {
  Shape shape = input.shape;
  size_t offset = 0;
  if (shape.rank() > 0) {
    const int64_t rows = shape[0], bytes = rows > 0 ? static_cast<int64_t>(input.bytes.size()) / rows : 0;
    offset = static_cast<size_t>(first_row_of_part(rows, rank, ranks) * bytes);
    shape[0] = first_row_of_part(rows, rank + 1, ranks) - first_row_of_part(rows, rank, ranks);
  }
  return {input.dtype, shape, const_cast<char*>(input.bytes.data()) + offset};
}

// Trains on the rank's rows of each batch; on devices `rank` is 0.
inline Trained train_rank(const Crew& crew, const Job& job, int rank, const std::string& meeting) {
  Trained trained;
  const auto run = [&]() -> Status {
    const Runtime runtime = runtime_with_devices(2, crew.kind);
    HEDDLE_TRY(const Nets nets, training_nets(runtime, crew, job));
    HEDDLE_TRY(Session session, runtime.open(nets, options_of(crew, meeting, rank)));
    for (const Arrays& step : job.steps) {
      std::vector<TensorView> inputs;
      const int ranks = crew.devices ? 1 : crew.size;
      for (const Array& input : step) {
        inputs.push_back(rows_of_rank(input, rank, ranks));
      }
      HEDDLE_TRY(const std::vector<Tensor> outputs, session.run(inputs));
      Arrays& copies = trained.outputs.emplace_back();
      for (const Tensor& output : outputs) copies.push_back(copy_of(output));
    }
    const std::shared_ptr<const Plan> plan = last_plan(session);
    for (const PlanStep& step : plan->steps) {
      if (!step.on_device) ++trained.on_host[step.type];
      if (!step.on_device || step.on_device->group.empty()) continue;
      trained.classes_of_groups.insert(plan->devices[step.on_device->device - 1u].stream_classes[step.on_device->stream]);
      trained.kernels_of_groups.insert(step.kernel->name);
    }
    return detail::read_variables(session, Internals::of(nets).nets[0], &trained);
  };
  trained.status = run();
  return trained;
}

// By rank; devices are one.
inline std::vector<Trained> train(const Crew& crew, const Job& job, const std::string& meeting = "training") {
  if (crew.devices) return {train_rank(crew, job, 0, meeting)};
  std::vector<Trained> ranks(static_cast<size_t>(crew.size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < crew.size; ++rank)
    threads.emplace_back([&, rank] { ranks[static_cast<size_t>(rank)] = train_rank(crew, job, rank, meeting); });
  for (std::thread& thread : threads) thread.join();
  return ranks;
}

// Checks that two tensors have almost the same numbers; others than floats are compared by their bits.
inline void expect_near(const Array& found, const Array& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(found.shape, expected.shape) << what;
  const auto near = [&](const auto& a, const auto& b) {
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(static_cast<double>(a[i]), static_cast<double>(b[i]), tolerance) << what << ' ' << i;
  };
  if (found.dtype == DType::f64)
    near(found.as<double>(), expected.as<double>());
  else if (found.dtype == DType::f32)
    near(found.as<float>(), expected.as<float>());
  else
    EXPECT_EQ(found, expected) << what;
}

// Checks that all trained, and that all replicas and ranks have the same bits.
inline void expect_alike(const std::vector<Trained>& ranks) {
  for (const Trained& rank : ranks) {
    ASSERT_TRUE(rank.status.ok()) << rank.status.text();
    EXPECT_EQ(rank.variables, ranks[0].variables);
    for (const auto& [name, replicas] : rank.replicas)
      for (const Array& replica : replicas) EXPECT_EQ(replica, rank.variables.at(name)) << name;
  }
}

// Trains on the crew, and compares what was learned with one device.
inline void expect_same_as_alone(const Crew& crew, const Job& job, double tolerance) {
  const std::vector<Trained> found = train(crew, job), alone = train({1, crew.devices}, job);
  expect_alike(found);
  ASSERT_TRUE(alone[0].status.ok()) << alone[0].status.text();
  ASSERT_EQ(found[0].variables.size(), alone[0].variables.size());
  for (const auto& [name, value] : alone[0].variables) expect_near(found[0].variables.at(name), value, tolerance, name);
}

}  // namespace heddle::testing_collectives
