// The results of the stages before compile for a net, as text (net/print.h), for tests that give a net and compare the text.
// Calls each stage by itself, so that a test can look at the result of any of them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "infer/infer.h"
#include "infer/registry_evaluator.h"
#include "net/print.h"
#include "place/place.h"
#include "plugin/registry.h"
#include "resolve/resolve.h"
#include "resolve/rule_reader.h"
#include "small_nets.h"
#include "transform/transform.h"
#include "verify/verify.h"

namespace heddle::testing_stages {

// Loads the cpu plugin and the plugins `others` from lib/test, which are named without ".so".
inline std::shared_ptr<const RegistrySnapshot> registry(const std::vector<std::string>& others = {}) {
  Registry registry(read_rewrite_rule);
  EXPECT_TRUE(registry.load(HEDDLE_BINARY_DIR "/lib/cpu.so").ok());
  for (const std::string& name : others) {
    const Status loaded = registry.load(HEDDLE_BINARY_DIR "/lib/test/" + name + ".so");
    EXPECT_TRUE(loaded.ok()) << loaded.text();
  }
  return registry.snapshot();
}

// Returns one line for each finding of a stage.
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

// The stages to apply to a net and their options. The defaults suit a net on the host whose types are all declared.
struct Stages {
  std::vector<std::string> plugins;  // from lib/test, in addition to the cpu plugin
  InferOptions infer;
  VerifyOptions verify;
  bool follow_content = true;  // uses the content of small values that decide extents
  std::string device = "cpu:0";
  bool fall_back = false;        // operators without a kernel on `device` run on the host
  Copies copies = Copies::warn;  // how verify reports them
  Limits limits;                 // limits of the transforms

  CompilationTarget target(Copies between) const {
    CompilationTarget target(device, limits, 1);
    target.copies = between;
    return target;
  }
  // Operators fall back to the host only if copies are allowed.
  CompilationTarget target() const { return target(fall_back ? Copies::warn : Copies::strict); }
};

// Returns the text of the resolved net, or the findings of resolve.
inline std::string resolved(Net net, const Stages& stages = {}) {
  const Result<Net> result = resolve(std::move(net), registry(stages.plugins));
  return result.ok() ? print(*result) : text_of(result.status());
}

// The data that all stages after resolve share.
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

// Returns the text of the typed net, or all findings of infer.
inline std::string inferred(Net net, const Stages& stages = {}) {
  const Typed made = typed(std::move(net), stages);
  return made.findings.failed() ? text_of(made.findings) : print(made.net);
}

// Returns the findings of verify, warnings and notes included; empty: it found nothing.
inline std::string verified(Net net, const Stages& stages = {}) {
  Typed made = typed(std::move(net), stages);
  VerifyOptions options = stages.verify;
  options.evaluator = made.evaluator.get();
  made.net = place(std::move(made.net), stages.target(), made.findings);
  return text_of(verify(made.net, stages.target(stages.copies), options));
}

inline Result<TypedNet> apply(const std::string& transform, TypedNet net, Evaluator& evaluator, const CompilationTarget& target) {
  if (transform == "optimize") return optimize(std::move(net), evaluator, target);
  if (transform == "lower_pointwise") return fuse_pointwise(std::move(net), false);
  const TransformOptions options;
  for (const Transform& one : transforms())
    if (one.name == transform) return one.run(std::move(net), {evaluator, target, options});
  return Status(Code::internal, "there is no transform " + transform);
}

// Returns the text of the net after the transforms, applied in the order given, or the error of the one that refuses. The warnings of
// "place" come first.
inline std::string transformed(Net net, const std::vector<std::string>& transforms, const Stages& stages = {}) {
  Typed made = typed(std::move(net), stages);
  if (made.findings.failed()) return text_of(made.findings);
  const CompilationTarget target = stages.target();
  std::string warnings;
  if (transforms.empty() || transforms[0] != "place") made.net = place(std::move(made.net), target, made.findings);
  for (const std::string& transform : transforms) {
    if (transform == "place") {
      Findings findings;
      made.net = place(std::move(made.net), target, findings);
      warnings += text_of(findings);
      continue;
    }
    Result<TypedNet> result = apply(transform, std::move(made.net), *made.evaluator, target);
    if (!result.ok()) return text_of(result.status());
    made.net = std::move(*result);
  }
  return warnings + print(made.net);
}

}  // namespace heddle::testing_stages
