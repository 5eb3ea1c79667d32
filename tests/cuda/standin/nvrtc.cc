// Implements NVRTC: sources are compiled for the host by the emulated grid (grid/grid.h); a "cubin", and also a "PTX", names the resulting
// library.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "cubin.h"
#include "process.h"

namespace standin = heddle::cuda::standin;
using standin::Compiling;
using standin::Lock;
using standin::Process;
using standin::Rule;
using standin::Source;

namespace {

// The common frame of each function: body(process) gives its answer.
template <class Body>
nvrtcResult nvrtc(const char* name, const Body& body) {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  ++process.calls.made;
  if (process.calls.on) process.calls.names.push_back(name);
  int answer = 0;
  return standin::fails_call(process, name, &answer) ? static_cast<nvrtcResult>(answer) : body(process);
}

// Calls body(source) for an existing program.
template <class Body>
nvrtcResult with_source(const char* name, nvrtcProgram program, const Body& body) {
  return nvrtc(name, [&](Process& process) {
    const std::shared_ptr<Source> source = process.programs.find(program);
    if (!source) return process.rules.add(Rule::unknown_program, name), NVRTC_ERROR_INVALID_PROGRAM;
    return body(*source);
  });
}

bool begins_with(const std::string& text, const char* beginning) {
  return text.rfind(beginning, 0) == 0;
}

// Accepts "sm_90", and "compute_90", which is for any device of it or above.
bool is_architecture(const std::string& text, const std::vector<int>& known) {
  return std::any_of(known.begin(), known.end(),
                     [&](int number) { return text == "sm_" + std::to_string(number) || text == "compute_" + std::to_string(number); });
}

// Returns false if NVRTC knows no such option or architecture, or the stand-in does not implement it.
bool read_options(int count, const char* const* options, const std::vector<int>& known, std::string* architecture) {
  for (int i = 0; i < count; ++i) {
    const std::string option = options[i];
    const std::string is = "--gpu-architecture=";
    if (begins_with(option, is.c_str())) {
      *architecture = option.substr(is.size());
      if (!is_architecture(*architecture, known)) return false;
      continue;
    }
    // Contraction of products and sums is optional for the compiler: here it never happens.
    if (option != "--fmad=true" && option != "--fmad=false" && option != "--std=c++17" && option != "--disable-warnings") return false;
  }
  return true;
}

// Waits for other compilations if a test wants them to be in progress at the same time.
void meet_others() {
  constexpr std::chrono::seconds patience(5);
  Process& process = Process::get();
  Lock lock(process.mutex);
  Compiling& compiling = process.compiling;
  compiling.most = std::max(compiling.most, ++compiling.now);
  process.met.notify_all();
  process.met.wait_for(lock, patience, [&] { return compiling.most >= compiling.wanted; });
  --compiling.now;
}

}  // namespace

// Returns a version that no NVRTC has, so that code compiled here is not mistaken for NVRTC's.
nvrtcResult nvrtcVersion(int* major, int* minor) {
  return nvrtc(__func__, [&](Process&) { return *major = 0, *minor = 1, NVRTC_SUCCESS; });
}

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  return nvrtc(__func__, [&](Process& process) { return *count = static_cast<int>(process.settings.architectures.size()), NVRTC_SUCCESS; });
}

nvrtcResult nvrtcGetSupportedArchs(int* architectures) {
  return nvrtc(__func__, [&](Process& process) {
    std::copy(process.settings.architectures.begin(), process.settings.architectures.end(), architectures);
    return NVRTC_SUCCESS;
  });
}

const char* nvrtcGetErrorString(nvrtcResult result) {
  switch (result) {
#define HEDDLE_NVRTC_RESULT(name) \
  case name:                      \
    return #name;
    HEDDLE_NVRTC_RESULT(NVRTC_SUCCESS)
    HEDDLE_NVRTC_RESULT(NVRTC_ERROR_INVALID_INPUT)
    HEDDLE_NVRTC_RESULT(NVRTC_ERROR_INVALID_PROGRAM)
    HEDDLE_NVRTC_RESULT(NVRTC_ERROR_INVALID_OPTION)
    HEDDLE_NVRTC_RESULT(NVRTC_ERROR_COMPILATION)
#undef HEDDLE_NVRTC_RESULT
    default:
      return "NVRTC_ERROR unknown";
  }
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* text, const char*, int headers, const char* const*, const char* const*) {
  return nvrtc(__func__, [&](Process& process) {
    if (!text || headers != 0) return NVRTC_ERROR_INVALID_INPUT;
    auto source = std::make_shared<Source>();
    source->text = text;
    return *program = process.programs.add(std::move(source)), NVRTC_SUCCESS;
  });
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  return with_source(__func__, *program, [&](const Source&) {
    Process::get().programs.remove(*program);
    return *program = nullptr, NVRTC_SUCCESS;
  });
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  static std::mutex& one_at_a_time = *new std::mutex();
  std::string architecture, text, folder, error;
  const nvrtcResult asked = with_source(__func__, program, [&](const Source& source) {
    text = source.text;
    folder = Process::get().settings.cache;
    return read_options(count, options, Process::get().settings.architectures, &architecture) ? NVRTC_SUCCESS : NVRTC_ERROR_INVALID_OPTION;
  });
  if (asked != NVRTC_SUCCESS) return asked;
  meet_others();
  const std::lock_guard<std::mutex> alone(one_at_a_time);
  std::string file;
  const auto module = heddle::cuda::grid::Module::compile(text, folder, &error, &file);
  Process& process = Process::get();
  const Lock lock(process.mutex);
  const std::shared_ptr<Source> source = process.programs.find(program);
  if (!source) return process.rules.add(Rule::unknown_program, __func__), NVRTC_ERROR_INVALID_PROGRAM;
  source->log = error;
  if (!module) return NVRTC_ERROR_COMPILATION;
  source->ptx = source->cubin = standin::write_cubin(architecture, file) + '\0';
  if (begins_with(architecture, "compute_")) source->cubin.clear();
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  return with_source(__func__, program, [&](const Source& source) { return *bytes = source.log.size() + 1, NVRTC_SUCCESS; });
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  return with_source(__func__, program, [&](const Source& source) {
    std::memcpy(log, source.log.c_str(), source.log.size() + 1);
    return NVRTC_SUCCESS;
  });
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t* bytes) {
  return with_source(__func__, program, [&](const Source& source) {
    *bytes = source.ptx.size();
    return source.ptx.empty() ? NVRTC_ERROR_INVALID_PROGRAM : NVRTC_SUCCESS;
  });
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char* ptx) {
  return with_source(__func__, program, [&](const Source& source) {
    std::copy(source.ptx.begin(), source.ptx.end(), ptx);
    return source.ptx.empty() ? NVRTC_ERROR_INVALID_PROGRAM : NVRTC_SUCCESS;
  });
}

// "The value of cubinSizeRet is set to 0 if the value specified to -arch is a virtual architecture instead of an actual architecture."
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  return with_source(__func__, program, [&](const Source& source) {
    *bytes = source.cubin.size();
    return source.ptx.empty() ? NVRTC_ERROR_INVALID_PROGRAM : NVRTC_SUCCESS;
  });
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  return with_source(__func__, program, [&](const Source& source) {
    std::copy(source.cubin.begin(), source.cubin.end(), cubin);
    return source.cubin.empty() ? NVRTC_ERROR_INVALID_PROGRAM : NVRTC_SUCCESS;
  });
}
