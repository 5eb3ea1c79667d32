// Functions run in a child process: a case that ends the child fails alone, and the test reports which.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace heddle::testing {

struct ChildResult {
  std::string crash;   // how the child ended during the case; empty: it did not
  std::string answer;  // what `work` returned
};

namespace detail {

// Returns the answers of cases [first, count) from one child, until it ends; `crash` is how it ended if that was before the last case.
inline std::vector<std::string> answers_of_child(size_t first, size_t count, const std::function<std::string(size_t)>& work,
                                                 std::string* crash) {
  int ends[2];
  if (pipe(ends) != 0) return *crash = "no pipe", std::vector<std::string>();
  const pid_t child = fork();
  if (child < 0) return *crash = "no child", std::vector<std::string>();
  if (child == 0) {
    close(ends[0]);
    for (size_t i = first; i < count; ++i) {
      const std::string answer = work(i);
      const uint64_t length = answer.size();
      const std::string record = std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + answer;
      for (size_t written = 0; written < record.size();) {
        const ssize_t n = write(ends[1], record.data() + written, record.size() - written);
        if (n <= 0) _exit(3);
        written += static_cast<size_t>(n);
      }
    }
    _exit(0);
  }
  close(ends[1]);
  std::string all;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) all.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) *crash = "ended with signal " + std::to_string(WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) *crash = "ended with exit status " + std::to_string(WEXITSTATUS(status));
  std::vector<std::string> answers;
  for (size_t at = 0; at + sizeof(uint64_t) <= all.size();) {
    uint64_t length = 0;
    std::memcpy(&length, all.data() + at, sizeof(length));
    answers.push_back(all.substr(at + sizeof(length), length));
    at += sizeof(length) + length;
  }
  return answers;
}

}  // namespace detail

// Runs cases 0 to count - 1 in children of this process: one child runs all of them; if a case ends it, another continues after that case.
inline std::vector<ChildResult> in_children(size_t count, const std::function<std::string(size_t)>& work) {
  std::vector<ChildResult> results;
  while (results.size() < count) {
    std::string crash;
    for (std::string& answer : detail::answers_of_child(results.size(), count, work, &crash)) results.push_back({"", std::move(answer)});
    if (results.size() < count) results.push_back({crash.empty() ? "ended too early" : crash, ""});
  }
  return results;
}
inline ChildResult in_child(const std::function<std::string()>& work) {
  return in_children(1, [&](size_t) { return work(); }).front();
}

}  // namespace heddle::testing
