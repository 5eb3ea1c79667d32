// LeftWork: what one execution leaves outstanding when its run is given up, in the runtime's list of outstanding work. It registers that
// work under the names of everything that it keeps busy: the execution itself, the memory that it works in, the variables that it updates,
// and, for a subnet, the same of the runs that it is part of.
//
// Belongs to one Execution; its parts find out what is outstanding. Threads: used by the thread that runs, and between runs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "context/context_memory.h"
#include "device/outstanding_work.h"
#include "heddle/status.h"

namespace heddle {

class LeftWork {
 public:
  // `name` is the execution's. `memory`, `outer`: must outlive it. `variables`: those that the plan updates; nullopt: none. `outer`: of the
  // run whose step runs this execution; null: there is none.
  LeftWork(std::shared_ptr<OutstandingWork> list, BusyName name, const ContextMemory& memory, std::optional<BusyName> variables,
           const LeftWork* outer)
      : list_(std::move(list)), name_(name), memory_(memory), variables_(variables), outer_(outer) {}
  LeftWork(const LeftWork&) = delete;
  LeftWork& operator=(const LeftWork&) = delete;

  // Registers work and returns the item, which keeps its names busy until `left` is 0. Throws std::bad_alloc: then nothing is registered.
  std::shared_ptr<Unanswered> add(std::shared_ptr<Unanswered::Count> left, std::string message) const {
    std::vector<BusyName> names;
    for (const LeftWork* of = this; of; of = of->outer_) {
      names.push_back(of->name_);
      names.push_back(of->memory_.workspace().busy_name());
      if (of->variables_) names.push_back(*of->variables_);
    }
    auto item = std::make_shared<Unanswered>(std::move(left), std::move(message), std::move(names));
    list_->add(item);
    return item;
  }
  void remove(const Unanswered& item) const noexcept { list_->remove(&item); }
  // Returns busy if work of the execution or of subnets in it is outstanding, and which.
  Status busy() const { return list_->busy(name_); }
  std::shared_ptr<const Unanswered> item() const noexcept { return list_->item(name_); }
  const std::shared_ptr<OutstandingWork>& list() const { return list_; }

 private:
  const std::shared_ptr<OutstandingWork> list_;
  const BusyName name_;
  const ContextMemory& memory_;
  const std::optional<BusyName> variables_;
  const LeftWork* const outer_;
};

}  // namespace heddle
