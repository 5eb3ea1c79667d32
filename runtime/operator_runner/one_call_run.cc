// The run of a call: its tiles, and its results.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "operator_runner/one_call.h"

namespace heddle {

// Runs all tiles, and finish; by another thread than the caller's, if requested.
heddle_status OneCall::run_ranges(RunCall& run, heddle_run_context& c, std::deque<CallBytes>& of_threads) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  if (call.split_seed == 0) {
    if (made.tiles > 0) ranges.emplace_back(0, made.tiles);
  } else {
    std::mt19937_64 random(call.split_seed);
    for (int64_t begin = 0; begin < made.tiles;) {
      // Two tiles or more are always split.
      const int64_t most = begin == 0 && made.tiles > 1 ? made.tiles - 1 : made.tiles;
      const int64_t until = std::min<int64_t>(most, begin + 1 + static_cast<int64_t>(random() % 3));
      ranges.emplace_back(begin, until);
      begin = until;
    }
    std::shuffle(ranges.begin(), ranges.end(), random);
  }
  const heddle_kernel& kernel = *made.kernel->kernel;
  CallObserver* const observer = call.conditions.observer;
  heddle_status status = HEDDLE_OK;
  const auto all = [&] {
    if (observer) observer->run_begins();
    try {
      for (size_t r = 0; r < ranges.size() && status == HEDDLE_OK; ++r) {
        // Does not begin with thread 0: this shows what works only there.
        const auto thread = static_cast<uint32_t>((r + of_threads.size() - 1) % of_threads.size());
        run.set_thread(thread, of_threads[thread].data);
        status = kernel.run(&c, ranges[r].first, ranges[r].second);
      }
      if (status == HEDDLE_OK && (kernel.flags & HEDDLE_KERNEL_ASYNC) && !ranges.empty()) status = run.wait();
      if (status == HEDDLE_OK && kernel.finish) status = kernel.finish(&c);
    } catch (...) {
      status = HEDDLE_ERROR_INTERNAL;
      run.error.text = "the kernel threw an exception across the plugin boundary";
    }
    if (observer) observer->run_ended();
  };
  if (call.conditions.other_threads)
    std::thread(all).join();
  else
    all();
  return status;
}

Status OneCall::run() {
  end = {OperatorPhase::allocate, HEDDLE_OK};
  const CallConditions& conditions = call.conditions;
  const CallBytes scratch(conditions, CallBytes::Memory::scratch, 0, made.scratch_bytes, conditions.scratch_fill);
  const uint32_t threads = conditions.other_threads ? conditions.max_threads : 1;
  std::deque<CallBytes> of_threads;
  for (uint32_t t = 0; t < threads; ++t)
    of_threads.emplace_back(conditions, CallBytes::Memory::thread_scratch, t, made.thread_scratch_bytes, conditions.thread_scratch_fill);
  const heddle_run_state state = {call.random_seed, call.step, 0};
  RunCall run(outputs, output_types, node.attributes, node.schema->op->subnets != nullptr, call.limit_bytes, conditions, call.host);
  std::vector<void*> resources;
  if (call.host) {
    HEDDLE_TRY(resources, call.host->resources());
  }
  run.set_thread(0, of_threads[0].data);
  heddle_run_context c = {};
  c.struct_size = sizeof(c);
  c.input_count = static_cast<uint32_t>(inputs.size());
  c.output_count = static_cast<uint32_t>(outputs.size());
  c.inputs = inputs.data();
  c.outputs = outputs.data();
  c.state = made.state.get();
  c.scratch = scratch.data;
  c.data_scratch = made.data_scratch_bytes > 0 ? scratch.data + made.data_scratch_at : nullptr;
  c.run_state = conditions.gives_state || node.schema->has_trait(HEDDLE_TRAIT_RANDOM) ? &state : nullptr;
  c.resources = resources.data();
  c.resource_count = static_cast<uint32_t>(resources.size());
  c.host = host_table();
  c.call = (made.kernel->kernel->flags & HEDDLE_KERNEL_ASYNC) != 0 ? run.token() : &run;
  const std::vector<heddle_tensor> views = output_views;
  const heddle_status status = run_ranges(run, c, of_threads);
  end = {OperatorPhase::run, status != HEDDLE_OK && run.error.misused ? HEDDLE_ERROR_INTERNAL : status};
  if (status != HEDDLE_OK) return plugin_error(Code::kernel_failed, status, run.error);
  const auto mistaken = [&](const std::string& what) {
    end.answer = HEDDLE_ERROR_INTERNAL;
    return Status(Code::kernel_failed, what);
  };
  if (const char* const wrong = run.wrong_completion()) return mistaken(wrong);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!output_types[i].dynamic && std::memcmp(&views[i], &output_views[i], sizeof(heddle_tensor)) != 0)
      return mistaken(fmt::format("the kernel changed the view of output {}, which is the host's", i));
  const auto overrun = [&](const std::string& what) {
    end.answer = HEDDLE_ERROR_INTERNAL;
    return Status(Code::kernel_failed, fmt::format("the kernel wrote past the end of {}", what));
  };
  if (scratch.overrun()) return overrun("its scratch");
  for (const CallBytes& bytes : of_threads)
    if (bytes.overrun()) return overrun("a thread's scratch");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (output_bytes[i] && output_bytes[i]->overrun()) return overrun(fmt::format("output {}", i));
  return collect(run);
}

// Collects outputs with the extents that the kernel has set.
Status OneCall::collect(const RunCall& run) {
  const auto broken = [&](const std::string& what) {
    end.answer = HEDDLE_ERROR_INTERNAL;
    return Status(Code::kernel_failed, fmt::format("the kernel {}", what));
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (output_types[i].dynamic) {
      if (!run.dynamic_outputs[i] && !run.error.missing.ok()) {
        end.answer = HEDDLE_ERROR_INTERNAL;
        return run.error.missing;
      }
      if (!run.dynamic_outputs[i]) return broken(fmt::format("allocated no output {}", i));
      if (run.dynamic_outputs[i]->overrun()) return broken(fmt::format("wrote past the end of output {}", i));
      output_blobs[i] = run.dynamic_outputs[i]->blob;
      continue;
    }
    const heddle_tensor& view = output_views[i];
    if (!view.extent) continue;
    Shape shape = output_types[i].shape;
    if (*view.extent == INT64_MIN) return broken(fmt::format("wrote no extent of output {}", i));
    if (*view.extent < 0 || *view.extent > shape[view.extent_axis])
      return broken(fmt::format("wrote extent {}, the bound is {}", *view.extent, shape[view.extent_axis]));
    shape[view.extent_axis] = *view.extent;
    output_blobs[i] = Blob::copy_of(output_types[i].dtype, shape, output_blobs[i]->data);
  }
  return {};
}

}  // namespace heddle
