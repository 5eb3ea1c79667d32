// must: what a benchmark needs to go on, or the end of it with the error's text.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "heddle/status.h"

namespace heddle {

template <class T>
T must(Result<T> result) {
  if (result.ok()) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.status().text().c_str());
  std::exit(1);
}
inline void must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.text().c_str());
  std::exit(1);
}

}  // namespace heddle
