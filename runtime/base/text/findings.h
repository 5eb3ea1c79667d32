// Collects every finding of a stage, so that a user can correct a net once and not error by error.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "heddle/status.h"

namespace heddle {

class Findings {
 public:
  // Keeps the diagnostic of a failing status, and those attached to it; ok is ignored. Beyond `limit`, findings are only counted.
  void add(Status status) {
    if (status.ok()) return;
    const std::vector<Diagnostic> attached = std::exchange(status.diagnostic().attached, {});
    add_one(std::move(status));
    for (const Diagnostic& d : attached) add(Status(d));
  }
  // Adds to the message of a finding that is kept, by its place in all().
  void append(size_t place, const std::string& text) { all_[place].message += text; }
  bool failed() const { return failed_; }
  // Counts all findings, also those that are not kept.
  size_t count() const { return count_; }
  const std::vector<Diagnostic>& all() const { return all_; }
  // Returns the first error with the others attached; ok when there was none.
  Status status() const {
    const Diagnostic* first = nullptr;
    for (const Diagnostic& d : all_)
      if (d.severity == Severity::error && !first) first = &d;
    if (!first) return {};
    Diagnostic whole = *first;
    for (const Diagnostic& d : all_)
      if (&d != first) whole.attached.push_back(d);
    if (count_ > all_.size()) {
      Diagnostic more;
      more.severity = Severity::note;
      more.code = whole.code;
      more.net = whole.net;
      more.message = fmt::format("{} further findings are not listed", count_ - all_.size());
      whole.attached.push_back(std::move(more));
    }
    return Status(std::move(whole));
  }

 private:
  void add_one(Status status) {
    ++count_;
    const bool first_error = status.diagnostic().severity == Severity::error && !failed_;
    failed_ = failed_ || first_error;
    if (all_.size() < limit || first_error) all_.push_back(std::move(status.diagnostic()));
  }

  static constexpr size_t limit = 1000;
  std::vector<Diagnostic> all_;
  size_t count_ = 0;
  bool failed_ = false;
};

}  // namespace heddle
