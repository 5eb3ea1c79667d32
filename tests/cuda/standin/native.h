/* What tests ask of the stand-in beside NVIDIA's functions: functions of cuda_standin.so, found with dlsym. C11.

   Thread mark of all: [any]. Texts are of the calling thread and stay until its next call for one. */
#ifndef HEDDLE_CUDA_STANDIN_NATIVE_H
#define HEDDLE_CUDA_STANDIN_NATIVE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HEDDLE_STANDIN_LAUNCH = 1, HEDDLE_STANDIN_ALLOCATION = 2 };

#define HEDDLE_STANDIN_FUNCTION __attribute__((visibility("default")))

/* All rules by name, with commas between them. */
HEDDLE_STANDIN_FUNCTION const char* heddle_standin_rules(void);
/* Those that were broken since it was last asked, one a line: "copy_beyond: cudaMemcpyAsync: 8 bytes at offset 60 of 64". Forgets them. */
HEDDLE_STANDIN_FUNCTION const char* heddle_standin_broken(void);
/* Breaks the rule "leak" for what is there now. */
HEDDLE_STANDIN_FUNCTION void heddle_standin_look_for_leaks(void);

/* How many calls of NVIDIA's functions were made since it was loaded. */
HEDDLE_STANDIN_FUNCTION uint64_t heddle_standin_calls(void);
/* Non-zero: calls are logged from now on; zero: no longer. Forgets what was logged. */
HEDDLE_STANDIN_FUNCTION void heddle_standin_log(int on);
/* The names of those that were logged, in order, with commas between them. */
HEDDLE_STANDIN_FUNCTION const char* heddle_standin_logged(void);
/* Ranges of NVTX meanwhile: the name of each that began, "end" where the last that began ended. */
HEDDLE_STANDIN_FUNCTION const char* heddle_standin_ranges(void);

/* Between a call with non-zero and one with zero lies one run: the rules "synchronises" and "allocates" hold in it. */
HEDDLE_STANDIN_FUNCTION void heddle_standin_run(int begins);

/* HEDDLE_STANDIN_LAUNCH: the `nth` launch from now on fails when the device comes to it, with `error`, after which there is no going on.
   HEDDLE_STANDIN_ALLOCATION: the `nth` allocation from now on, of the host or a device, finds no memory. 0: none does. */
HEDDLE_STANDIN_FUNCTION void heddle_standin_fail(int what, uint64_t nth, int error);

/* The `nth` call from now on of the function of NVIDIA's by that name does nothing, and answers `answer`, a status of its library's.
   `loss`: the error after which, from that call on, there is no going on; 0: there is. HEDDLE_STANDIN_STOP as answer: the process stops
   there (SIGSTOP), and when it is continued the call does what it does otherwise. */
#define HEDDLE_STANDIN_STOP (-19)
HEDDLE_STANDIN_FUNCTION void heddle_standin_fail_call(const char* name, uint64_t nth, int answer, int loss);

/* From now on each compilation of NVRTC's waits until `count` of them are under way at once, or for some seconds. */
HEDDLE_STANDIN_FUNCTION void heddle_standin_meet(int count);
/* The most compilations that were under way at once since then. */
HEDDLE_STANDIN_FUNCTION int heddle_standin_met(void);

/* Non-zero: no copy begins from now on; what streams do otherwise goes on. Zero: copies go on. */
HEDDLE_STANDIN_FUNCTION void heddle_standin_hold_transfers(int hold);
/* How many functions of the host's streams have called (cudaLaunchHostFunc) since the stand-in was loaded. */
HEDDLE_STANDIN_FUNCTION uint64_t heddle_standin_host_functions(void);

/* As if it had just been loaded, but for calls: errors are gone, and all that was made. */
HEDDLE_STANDIN_FUNCTION void heddle_standin_reset(void);

#ifdef __cplusplus
}
#endif

#endif /* HEDDLE_CUDA_STANDIN_NATIVE_H */
