// The part of `heddle plugin check` that examines one operator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/plugin/check/device_examination.h"
#include "commands/plugin/check/operator_cases.h"
#include "commands/plugin/check/verdict.h"
#include "plugin/registry.h"

namespace heddle::tool {

struct OperatorVerdict {
  Verdict verdict;
  std::vector<std::string> unseen;  // for one that passes: the parts of its declaration that have not run (Coverage::missing)
  std::vector<uint64_t> results{};  // of operator_results()
  std::vector<Note> notes{};        // whatever the verdict
};

// Runs the operator's examples, which it must not refuse, and inputs that its declaration allows (operator_cases.h): each is run or refused
// as defined by CallEnd::refused(); all else is a failure, whatever other inputs it fits. Examples are run in every other dtype that their
// first input may have, too. The checks are: those of examine_call(); real outputs against examples and inference; a cost that the compiler
// accepts; the bits of its pointwise text, where it has a kernel beside one, also on special values; the same with inputs swapped, where it
// is commutative; results close to row-major's in each layout that formats() ranks; the results of epilogue ops on its output, where its
// kernel accepts an epilogue; and the declared gradient against differences. With `device`: the same bits there too. `host` answers the
// calls. Not run, with the reason, when it refuses all; else the first mistake, with the inputs.
//
// With `only`: runs only this call, and does not report what has not run.
OperatorVerdict examine_operator(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed, CallHost* host,
                                 DeviceExamination* device = nullptr, const OperatorCase* only = nullptr);

// Hashes of the results of each of those calls, in their order whatever the order in which they are made; 0: it was refused. If a result
// depends on earlier calls of the process, the hashes depend on that order.
std::vector<uint64_t> operator_results(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed, CallHost* host,
                                       bool last_first);

}  // namespace heddle::tool
