// The mistakes that the operators of kernel_mistakes.cc make; an attribute selects kind and variant. The kinds are those of
// docs/kernel_mistakes.md; tests/mistakes compares them.
#pragma once

#include <cstdint>
#include <cstring>

struct KernelMistake {
  const char* kind;
  const char* type;      // the operator, of domain "mistaken"
  int64_t first, count;  // the variants
};

inline constexpr KernelMistake kernel_mistakes[] = {
    {"throws", "Plain", 0, 10},
    {"throws-in-destroy", "Plain", 0, 1},
    {"fails-silently", "Plain", 0, 5},
    {"unknown-status", "Plain", 0, 12},
    {"pending", "Plain", 0, 4},
    {"pending", "Resuming", 0, 1},
    {"cancelled", "Plain", 0, 4},
    {"unsupported", "Plain", 0, 2},
    {"device-lost", "Plain", 0, 4},
    {"tiles", "Plain", 0, 4},
    {"tiles-of-one", "Resuming", 0, 1},
    {"tiles-of-one", "Started", 0, 1},
    {"cost", "Plain", 0, 4},
    {"scratch", "Plain", 0, 5},
    {"data-scratch", "Plain", 0, 2},
    {"formats", "Plain", 0, 12},
    {"writes-after", "Plain", 0, 12},
    {"writes-far-after", "Plain", 0, 2},
    {"writes-before", "Plain", 0, 2},
    {"writes-input", "Plain", 0, 4},
    {"writes-after-scratch", "Plain", 0, 2},
    {"reads-beyond", "Plain", 0, 2},
    {"reads-first", "Plain", 0, 3},
    {"leaves-unwritten", "Plain", 0, 3},
    {"changes-view", "Plain", 0, 6},
    {"changes-view", "Bounded", 6, 1},
    {"allocates", "Plain", 0, 2},
    {"starts-threads", "Plain", 0, 1},
    {"waits", "Plain", 0, 2},
    {"calls-the-runtime", "Plain", 0, 2},
    {"extent", "Bounded", 0, 12},
    {"extent-unwritten", "Bounded", 0, 1},
    {"bool", "Bool", 0, 2},
    {"by-tiles", "Plain", 0, 1},
    {"by-thread", "Plain", 0, 2},
    {"by-chance", "Plain", 0, 2},
    {"by-seed", "Plain", 0, 1},
    {"allocate", "Dynamic", 0, 20},
    {"allocate", "Plain", 20, 1},
    {"allocate", "Bounded", 20, 1},
    {"prepack", "Packing", 0, 10},
    {"packs-no-constant", "Packing", 0, 1},
    {"need", "Plain", 0, 13},
    {"needs-what-is-not-there", "Plain", 0, 2},
    {"subnet", "Holder", 0, 9},
    {"subnet-of-other-ports", "Holder", 0, 8},
    {"declares", "Holder", 0, 13},
    {"moves", "Mover", 0, 4},
    {"completes-twice", "Started", 0, 2},
    {"completes-a-run-that-is-over", "Started", 0, 2},
    {"completes-and-fails", "Started", 0, 3},
    {"completes-as-pending", "Started", 0, 1},
    {"completes-what-is-not-asynchronous", "Plain", 0, 1},
    {"prints", "Plain", 0, 1},
    {"leaks", "Plain", 0, 2},
    {"in-place", "InPlace", 0, 1},
    {"index-unchecked", "Indexing", 0, 1},
    {"commutative", "Adding", 0, 1},
    {"equals-pointwise", "Rectifying", 0, 1},
    {"infers", "Plain", 0, 6},
    {"infers-too-much", "Plain", 0, 1},
    {"costs", "Plain", 0, 4},
};

// The function that calls-the-runtime calls: its address is an attribute.
struct RuntimeCall {
  // Returns false if it failed, with the reason in `why`.
  bool (*call)(const RuntimeCall* self, bool run, char* why, size_t size);
};

// Returns the number of elements of the mistaken operator's input: they end at a line of 64 bytes, or before.
inline int64_t elements_of_mistake(const char* kind, int64_t variant) {
  constexpr int64_t sizes[] = {5, 16, 1, 63};
  return std::strcmp(kind, "writes-after") == 0 ? sizes[variant / 3 % 4] : 5;
}
