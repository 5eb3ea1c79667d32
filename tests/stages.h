// What the stages in front of compile make of a net, as text (net/print.h): for tests that give a net and compare what comes out. How the
// stages are called stands here alone.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "infer/infer.h"
#include "infer/registry_evaluator.h"
#include "net/print.h"
#include "plugin/registry.h"
#include "resolve/resolve.h"
#include "small_nets.h"
#include "transform/transform.h"
#include "verify/verify.h"

namespace heddle::testing_stages {

// The cpu plugin, and `others` of lib/test: names without ".so".
inline std::shared_ptr<const RegistrySnapshot> registry(const std::vector<std::string>& others = {}) {
  Registry registry;
  EXPECT_TRUE(registry.load(HEDDLE_BINARY_DIR "/lib/cpu.so").ok());
  for (const std::string& name : others) {
    const Status loaded = registry.load(HEDDLE_BINARY_DIR "/lib/test/" + name + ".so");
    EXPECT_TRUE(loaded.ok()) << loaded.text();
  }
  return registry.snapshot();
}

// One line for each of what a stage found.
inline std::string text_of(const Findings& findings) {
  std::string text;
  for (const Diagnostic& d : findings.all()) text += d.text() + "\n";
  return text;
}
inline std::string text_of(const Status& status) {
  Findings findings;
  findings.add(status);
  return text_of(findings);
}

// What a net is put through, and under which options. The defaults are those of a net on the host whose types are all declared.
struct Stages {
  std::vector<std::string> plugins;  // of lib/test, beside the cpu plugin
  InferOptions infer;
  VerifyOptions verify;
  bool follow_content = true;  // of small values that decide extents
  std::string device = "cpu:0";
  bool fall_back = false;  // operators without a kernel on `device` run on the host
  Limits limits;           // of transforms
};

// Text of the resolved net, or what resolve finds.
inline std::string resolved(Net net, const Stages& stages = {}) {
  const Result<Net> result = resolve(std::move(net), registry(stages.plugins));
  return result.ok() ? print(*result) : text_of(result.status());
}

// Everything that stages behind resolve share.
struct Typed {
  std::shared_ptr<const RegistrySnapshot> plugins;
  std::unique_ptr<Evaluator> evaluator;
  TypedNet net;
  Findings findings;
};
inline Typed typed(Net net, const Stages& stages = {}) {
  Typed made;
  made.plugins = registry(stages.plugins);
  made.evaluator = make_registry_evaluator(made.plugins);
  Result<Net> whole = resolve(std::move(net), made.plugins);
  EXPECT_TRUE(whole.ok()) << whole.status().text();
  InferOptions options = stages.infer;
  if (stages.follow_content) options.evaluator = made.evaluator.get();
  if (whole.ok()) made.net = infer_all(std::move(*whole), made.plugins, options, made.findings);
  return made;
}

// Text of the typed net, or what infer finds: all of it.
inline std::string inferred(Net net, const Stages& stages = {}) {
  const Typed made = typed(std::move(net), stages);
  return made.findings.failed() ? text_of(made.findings) : print(made.net);
}

// What verify finds, warnings and notes too; empty: nothing.
inline std::string verified(Net net, const Stages& stages = {}) {
  Typed made = typed(std::move(net), stages);
  VerifyOptions options = stages.verify;
  options.default_device = stages.device;
  options.evaluator = made.evaluator.get();
  return text_of(verify(place(std::move(made.net), stages.device, stages.fall_back, made.findings), options));
}

inline Result<TypedNet> apply(const std::string& transform, TypedNet net, Evaluator& evaluator, const Stages& stages) {
  if (transform == "prune") return prune(std::move(net));
  if (transform == "fold_constants") return fold_constants(std::move(net), evaluator, stages.limits);
  if (transform == "fold_batch_normalization") return fold_batch_normalization(std::move(net));
  if (transform == "apply_rules") return apply_rules(std::move(net), stages.limits);
  if (transform == "fuse_epilogues") return fuse_epilogues(std::move(net), stages.device);
  if (transform == "fuse_pointwise") return fuse_pointwise(std::move(net), stages.device);
  if (transform == "lower_pointwise") return fuse_pointwise(std::move(net), stages.device, false);
  if (transform == "insert_copies") return insert_copies(std::move(net), stages.device);
  if (transform == "optimize") {
    TransformOptions options;
    options.limits = stages.limits;
    options.default_device = stages.device;
    return optimize(std::move(net), evaluator, options);
  }
  return Status(Code::internal, "there is no transform " + transform);
}

// Text of what the transforms make of a net, in their order, or why one refuses. "place" puts its warnings in front.
inline std::string transformed(Net net, const std::vector<std::string>& transforms, const Stages& stages = {}) {
  Typed made = typed(std::move(net), stages);
  if (made.findings.failed()) return text_of(made.findings);
  std::string warnings;
  for (const std::string& transform : transforms) {
    if (transform == "place") {
      Findings findings;
      made.net = place(std::move(made.net), stages.device, stages.fall_back, findings);
      warnings += text_of(findings);
      continue;
    }
    Result<TypedNet> result = apply(transform, std::move(made.net), *made.evaluator, stages);
    if (!result.ok()) return text_of(result.status());
    made.net = std::move(*result);
  }
  return warnings + print(made.net);
}

}  // namespace heddle::testing_stages
