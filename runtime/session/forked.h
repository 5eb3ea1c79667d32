// Detects whether this process is a fork of the one in which an object was made. A forked child has none of its parent's threads, and locks
// that they held stay locked: nothing that was made before may be run, waited for or destroyed there.
#pragma once

#include <cstdint>

#include "heddle/status.h"

namespace heddle {

// Returns another number in each child that was forked since the first call in this process. Makes no system call.
uint32_t fork_generation();

class MadeInThisProcess {
 public:
  // Returns error `forked`, unless this is the process in which the object was made.
  Status check() const;
  bool holds() const { return generation_ == fork_generation(); }

 private:
  uint32_t generation_ = fork_generation();
};

// Deletes the object, but not in a forked child, where the threads that it would wait for do not exist.
template <class T>
void delete_unless_forked(T* object, const MadeInThisProcess& made) {
  if (made.holds()) delete object;
}

}  // namespace heddle
