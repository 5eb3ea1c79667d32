#include "native.h"

#include "process.h"

namespace standin = heddle::cuda::standin;
using standin::Lock;
using standin::Process;

namespace {

const char* told(std::string text) {
  static thread_local std::string last;
  last = std::move(text);
  return last.c_str();
}

template <class Names>
std::string joined(const Names& names, const char* between) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "" : between) + std::string(name);
  return all;
}

}  // namespace

const char* heddle_standin_rules() {
  std::vector<const char*> names;
  for (const standin::RuleText& rule : standin::rule_texts()) names.push_back(rule.name);
  return told(joined(names, ","));
}

const char* heddle_standin_broken() {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  return told(joined(process.rules.take(), "\n"));
}

void heddle_standin_look_for_leaks() {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  process.report_leaks();
}

uint64_t heddle_standin_calls() {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  return process.calls.made;
}

void heddle_standin_log(int on) {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  process.calls.on = on != 0;
  process.calls.names.clear();
  process.calls.ranges.clear();
}

const char* heddle_standin_logged() {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  return told(joined(process.calls.names, ","));
}

const char* heddle_standin_ranges() {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  return told(joined(process.calls.ranges, ","));
}

void heddle_standin_run(int begins) {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  begins != 0 ? process.run.begin() : process.run.end();
}

void heddle_standin_fail(int what, uint64_t nth, int error) {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  if (what == HEDDLE_STANDIN_ALLOCATION) {
    process.faults.allocation = nth;
    return;
  }
  process.faults.launch = nth;
  process.faults.launch_error = static_cast<cudaError_t>(error);
}

void heddle_standin_fail_call(const char* name, uint64_t nth, int answer, int loss) {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  process.faults.call = name;
  process.faults.call_number = nth;
  process.faults.answer = answer;
  process.faults.loss = static_cast<cudaError_t>(loss);
}

void heddle_standin_meet(int count) {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  process.compiling = {count, 0, 0};
}

int heddle_standin_met() {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  return process.compiling.most;
}

void heddle_standin_hold_transfers(int hold) {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  process.engine.hold_transfers(hold != 0);
}

uint64_t heddle_standin_host_functions() {
  return Process::get().host_functions;
}

void heddle_standin_reset() {
  Process& process = Process::get();
  Lock lock(process.mutex);
  process.reset(lock);
}
