// Injection: puts a function in the place of one step's kernel.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "compile/plan.h"

namespace heddle {

// A step whose next call, once it is armed, is another function. One at a time; must outlive the contexts that are prepared
// after it.
class Injection {
 public:
  // `instead(original)` is called in place of the step's kernel; `original()` calls that.
  using Instead = std::function<heddle_status(const heddle_run_context& context, const std::function<heddle_status()>& original)>;
  Injection(PlanStep& step, Instead instead) : original_(step.kernel->kernel), kernel_(*original_), instead_(std::move(instead)) {
    entry_ = *step.kernel;
    kernel_.run = call;
    entry_.kernel = &kernel_;
    step.kernel = &entry_;
    current() = this;
  }
  ~Injection() { current() = nullptr; }
  Injection(const Injection&) = delete;
  Injection& operator=(const Injection&) = delete;
  void arm() { armed_ = true; }
  bool reached() const { return reached_; }
  // An error that the kernel reports.
  static heddle_status fail(const heddle_run_context& context) {
    const std::string text = "it goes wrong, as it was to";
    context.host->set_error(context.call, HEDDLE_ERROR_INVALID, text.data(), text.size());
    return HEDDLE_ERROR_INVALID;
  }

 private:
  static Injection*& current() {
    static Injection* one = nullptr;
    return one;
  }
  static heddle_status call(const heddle_run_context* context, int64_t begin, int64_t end) {
    Injection& self = *current();
    const auto original = [&] { return self.original_->run(context, begin, end); };
    if (!self.armed_.exchange(false)) return original();
    self.reached_ = true;
    return self.instead_(*context, original);
  }
  const heddle_kernel* const original_;
  heddle_kernel kernel_;
  KernelEntry entry_;
  const Instead instead_;
  std::atomic<bool> armed_{false}, reached_{false};
};

// The steps that compute an operator of the net.
inline std::vector<uint32_t> working_steps(const Plan& plan) {
  std::vector<uint32_t> steps;
  for (uint32_t i = 0; i < plan.steps.size(); ++i)
    if (const DeviceWork* const work = plan.steps[i].on_device.get(); !work || !work->is_auxiliary()) steps.push_back(i);
  return steps;
}

}  // namespace heddle
