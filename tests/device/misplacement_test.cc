// Misplaced operators, subnets, variables, feeds and control edges: on a device of the wrong kind, with an index that does not exist, of a
// kind that no plugin provides, and mixed. All are refused before anything runs, each with one finding that names the operator, what it
// reads, updates or belongs to, the devices, and the fix.
#include <functional>

#include "device_support.h"
#include "small_nets.h"

namespace heddle {
namespace {

using namespace testing_devices;

HEDDLE_DEVICE_SUITE(DeviceMisplacement);

constexpr const char* copies_mend = "let copies be inserted with SessionOptions::copies = Copies::automatic";

// An expected finding: its text contains all of `names`, and its hint contains `mend`.
struct Wanted {
  Code code;
  std::string node;
  std::vector<std::string> names;
  std::string mend;
};
struct Misplacement {
  std::string what, how;
  std::function<Net()> net;
  std::vector<Wanted> wanted;
};

std::string no_index() {
  return device_name(kind().devices);
}
std::string last_device() {
  return "the last is " + device_name(kind().devices - 1);
}
const std::string nowhere = "nowhere:0", host = "cpu:0", load_it = "load its plugin with RuntimeOptions::plugins, or choose cpu";

ValueId feed(NetBuilder& b, const std::string& name = "x") {
  return b.input(name, DType::f32, Shape{4});
}
ValueId relu(NetBuilder& b, const std::string& device, const std::string& name, ValueId x) {
  return on(b, device, b.add1("Relu", name, {x}));
}
// No device has a kernel for this operator.
ValueId through(NetBuilder& b, const std::string& name, ValueId x) {
  return b.add1("Through", name, {x}, {}, "host_only");
}
// If(x, with) on the host; the operators of its branch are on the devices `inside`, one after the other.
ValueId branches(NetBuilder& b, const std::string& name, ValueId x, const std::vector<std::string>& inside, const ValueId* with = nullptr) {
  NetBuilder branch("branch");
  ValueId y = branch.input("in", DeclaredType());
  if (with) y = branch.add1("Add", "sum", {y, branch.input("captured", DeclaredType())});
  for (size_t i = 0; i < inside.size(); ++i) y = relu(branch, inside[i], "inner" + std::to_string(i), y);
  branch.output(inside.empty() ? branch.add1("Abs", "abs", {y}) : y);
  const auto both = testing_nets::subnet(branch);
  std::vector<ValueId> inputs = {b.constant("yes to " + name, Blob::copy_of(DType::boolean, Shape{}, "\1")), x};
  if (with) inputs.push_back(*with);
  return b.add1("If", name, inputs, {{"then_branch", both}, {"else_branch", both}});
}
ValueId update(NetBuilder& b, const std::string& device, const std::string& name, ValueId version, ValueId x) {
  return on(b, device, b.add1("AccumulateAdd", name, {version, x}, {}, "heddle"));
}
Net net_of(const std::function<void(NetBuilder&)>& build) {
  NetBuilder b("misplaced");
  build(b);
  return b.finish();
}
// Makes the last operator wait for the first `count`.
void wait_for_first(NetBuilder& b, size_t count) {
  for (size_t i = 0; i < count; ++i) b.net().nodes.back().control.emplace_back(i);
}

Wanted inside(const std::string& node, const std::string& device) {
  return {Code::unsupported, node, {"\"" + device + "\"", "\"" + host + "\"", "in subnet \"branch\""}, "leave its device out"};
}
Wanted missing(const std::string& node, const std::string& device, const std::vector<std::string>& names) {
  Wanted wanted{Code::no_such_device, node, names, device == nowhere ? load_it : last_device()};
  wanted.names.push_back("\"" + device + "\"");
  return wanted;
}
Wanted crossing(const std::string& node, const std::string& here, const std::string& input, const std::string& there) {
  return {Code::wrong_device, node, {"runs on \"" + here + "\" but input \"" + input + "\" is on \"" + there + "\""}, copies_mend};
}
Wanted no_kernel(const std::string& node, const std::string& device) {
  return {Code::no_kernel, node, {"\"" + device + "\"", "\"x\" (f32)"}, "choose another device"};
}

std::vector<Misplacement> of_operators(const std::string& d0, const std::string& d1) {
  const auto relu_of_relu = [d0](const std::string& device) {
    return [=] { return net_of([&](NetBuilder& b) { b.output(relu(b, device, "y", relu(b, d0, "r", feed(b)))); }); };
  };
  return {{"operator", "wrong kind", relu_of_relu(host), {crossing("y", host, "r", d0)}},
          {"operator", "index", relu_of_relu(no_index()), {missing("y", no_index(), {"\"r\" of \"" + d0 + "\""})}},
          {"operator", "unknown", relu_of_relu(nowhere), {missing("y", nowhere, {"\"r\" of \"" + d0 + "\""})}},
          {"operator",
           "mixed",
           [=] {
             return net_of([&](NetBuilder& b) {
               const ValueId x = feed(b);
               b.output(on(b, d0, b.add1("Add", "y", {relu(b, d0, "a", x), relu(b, d1, "b", x)})));
             });
           },
           {crossing("y", d0, "b", d1)}}};
}

// In the subnet of an operator on the host everything runs on the host, and its captures are inputs of that operator.
std::vector<Misplacement> of_subnets(const std::string& d0, const std::string& d1) {
  const auto branch_on = [](const std::string& device) {
    return [=] { return net_of([&](NetBuilder& b) { b.output(branches(b, "y", feed(b), {device})); }); };
  };
  const auto captures = [=](const std::string& first, const std::string& second, const std::vector<std::string>& inner) {
    return [=] {
      return net_of([&](NetBuilder& b) {
        const ValueId captured = relu(b, second, "captured", feed(b, "z"));
        b.output(branches(b, "y", relu(b, first, "r", feed(b)), inner, &captured));
      });
    };
  };
  return {{"subnet", "wrong kind", captures(host, d0, {d0}), {inside("y/inner0", d0), crossing("y", host, "captured", d0)}},
          {"subnet", "index", branch_on(no_index()), {inside("y/inner0", no_index())}},
          {"subnet", "unknown", branch_on(nowhere), {inside("y/inner0", nowhere)}},
          {"subnet",
           "mixed",
           captures(d1, d0, {d0, d1}),
           {inside("y/inner0", d0), inside("y/inner1", d1), crossing("y", host, "r", d1), crossing("y", host, "captured", d0)}}};
}

std::vector<Misplacement> of_variables(const std::string& d0, const std::string& d1) {
  const auto updated = [](const std::string& device, const std::string& again, const std::string& reader) {
    return [=] {
      return net_of([&](NetBuilder& b) {
        const ValueId x = feed(b), w = b.variable("w", whole_numbers(Shape{4}, 1, 1));
        if (!reader.empty()) b.output(relu(b, reader, "y", w));
        const ValueId once = update(b, device, "once", w, x);
        if (!again.empty()) update(b, again, "twice", once, x);
      });
    };
  };
  // The update has a device that it may be on.
  const std::vector<Misplacement> of_updates = {
      {"variable", "wrong kind", updated(d0, "", host), {crossing("y", host, "w", d0)}},
      {"variable",
       "mixed",
       updated(d0, d1, ""),
       {{Code::wrong_device,
         "twice",
         {"runs on \"" + d1 + "\" but updates variable \"w\", which is updated on \"" + d0 + "\""},
         "put all operators that update one variable on one device"}}}};
  std::vector<Misplacement> all = {
      {"variable", "index", updated(no_index(), "", host), {missing("once", no_index(), {"update variable \"w\""})}},
      {"variable", "unknown", updated(nowhere, "", host), {missing("once", nowhere, {"update variable \"w\""})}},
      // A variable that nothing updates is on the host if its readers run on several devices.
      {"variable",
       "mixed",
       [=] {
         return net_of([&](NetBuilder& b) {
           const ValueId w = b.variable("w", whole_numbers(Shape{4}, 1, 1));
           b.output(relu(b, d0, "first", w));
           b.output(relu(b, d1, "second", w));
         });
       },
       {crossing("first", d0, "w", host), crossing("second", d1, "w", host)}}};
  all.insert(all.end(), of_updates.begin(), of_updates.end());
  return all;
}

// A feed is on the host and is copied to each device that reads it; only its readers can be misplaced.
std::vector<Misplacement> of_feeds(const std::string& d0) {
  const auto read_on = [](const std::vector<std::string>& devices) {
    return [=] {
      return net_of([&](NetBuilder& b) {
        const ValueId x = feed(b);
        for (size_t i = 0; i < devices.size(); ++i) b.output(relu(b, devices[i], "y" + std::to_string(i), x));
      });
    };
  };
  const auto x_of_host = "read \"x\" of \"" + host + "\"";
  return {
      {"feed",
       "wrong kind",
       [=] { return net_of([&](NetBuilder& b) { b.output(on(b, d0, through(b, "y", feed(b)))); }); },
       {no_kernel("y", d0)}},
      {"feed", "index", read_on({d0, no_index()}), {missing("y1", no_index(), {x_of_host})}},
      {"feed", "unknown", read_on({nowhere, d0}), {missing("y0", nowhere, {x_of_host})}},
      {"feed", "mixed", read_on({no_index(), d0, nowhere}), {missing("y0", no_index(), {x_of_host}), missing("y2", nowhere, {x_of_host})}}};
}

// An operator that waits may run elsewhere; the one that it waits for must have a device that it can run on.
std::vector<Misplacement> of_control(const std::string& d0) {
  const auto waits = [](const std::vector<std::string>& devices) {
    return [=] {
      return net_of([&](NetBuilder& b) {
        const ValueId x = feed(b);
        for (size_t i = 0; i < devices.size(); ++i) relu(b, devices[i], "before" + std::to_string(i), x);
        b.output(relu(b, host, "after", x));
        wait_for_first(b, devices.size());
      });
    };
  };
  return {{"control",
           "wrong kind",
           [=] {
             return net_of([&](NetBuilder& b) {
               const ValueId x = feed(b);
               b.output(on(b, d0, through(b, "before0", x)));
               b.output(relu(b, host, "after", x));
               wait_for_first(b, 1);
             });
           },
           {no_kernel("before0", d0)}},
          {"control", "index", waits({no_index()}), {missing("before0", no_index(), {"\"x\""})}},
          {"control", "unknown", waits({nowhere}), {missing("before0", nowhere, {"\"x\""})}},
          {"control", "mixed", waits({no_index(), d0, nowhere}), {missing("before0", no_index(), {}), missing("before2", nowhere, {})}}};
}

std::vector<Misplacement> all_misplacements() {
  std::vector<Misplacement> all;
  const std::string d0 = device_name(0), d1 = device_name(1);
  for (auto& family : {of_operators(d0, d1), of_subnets(d0, d1), of_variables(d0, d1), of_feeds(d0), of_control(d0)})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

SessionOptions strict() {
  SessionOptions options;
  options.copies = Copies::strict;
  return options;
}

std::vector<Diagnostic> errors(std::vector<Diagnostic> diagnostics) {
  std::erase_if(diagnostics, [](const Diagnostic& d) { return d.severity != Severity::error; });
  return diagnostics;
}
std::vector<Diagnostic> errors(const Status& status) {
  std::vector<Diagnostic> all = {status.diagnostic()};
  all.insert(all.end(), status.diagnostic().attached.begin(), status.diagnostic().attached.end());
  return errors(all);
}

// Checks that there are as many findings as expected, and that each expected one is found.
void expect_found(const std::vector<Diagnostic>& found, const std::vector<Wanted>& wanted) {
  std::string text;
  for (const Diagnostic& d : found) text += d.text() + "\n";
  EXPECT_EQ(found.size(), wanted.size()) << text;
  for (const Wanted& w : wanted) {
    const bool is_there = std::any_of(found.begin(), found.end(), [&](const Diagnostic& d) {
      const auto names = [&](const std::string& name) { return d.text().find(name) != std::string::npos; };
      return d.code == w.code && d.node == w.node && std::all_of(w.names.begin(), w.names.end(), names) &&
             d.hint.find(w.mend) != std::string::npos;
    });
    EXPECT_TRUE(is_there) << w.node << " is not told as it should be in\n" << text;
  }
}

TEST_P(DeviceMisplacement, IsRefusedBeforeAnythingRuns) {
  HEDDLE_DEVICES_NEEDED(2);
  const Runtime runtime = device_runtime();
  const std::vector<Misplacement> all = all_misplacements();
  std::map<std::string, int> cells;
  for (const Misplacement& m : all) {
    SCOPED_TRACE(m.what + ", " + m.how);
    ++cells[m.what + ", " + m.how];
    auto session = runtime.open(m.net(), strict());
    ASSERT_TRUE(session.ok()) << session.status().text();
    expect_found(errors(session->check()), m.wanted);
    // prepare and run fail with the same findings, and make no context.
    const Status refused = session->prepare().status();
    ASSERT_FALSE(refused.ok());
    expect_found(errors(refused), m.wanted);
    const std::vector<float> numbers(4, 1);
    const std::vector<TensorView> inputs(session->inputs().size(), TensorView{DType::f32, Shape{4}, const_cast<float*>(numbers.data())});
    EXPECT_EQ(session->run(inputs).status().code(), refused.code());
  }
  EXPECT_EQ(cells.size(), 5u * 4u);
}

// Misplacements that copies can fix are accepted with copies; everything else is refused whatever may be copied.
TEST_P(DeviceMisplacement, CopiesMendWhatOnlyCrosses) {
  HEDDLE_DEVICES_NEEDED(2);
  const Runtime runtime = device_runtime();
  for (const Misplacement& m : all_misplacements()) {
    SCOPED_TRACE(m.what + ", " + m.how);
    std::vector<Wanted> left = m.wanted;
    std::erase_if(left, [](const Wanted& w) { return w.mend == copies_mend; });
    const Status status = prepare(runtime, m.net(), silent()).status();
    EXPECT_EQ(status.ok(), left.empty()) << status.text();
    if (!status.ok()) expect_found(errors(status), left);
  }
}

// These combinations look like misplacements but are allowed by the rules.
TEST_P(DeviceMisplacement, LeavesAloneWhatMayBeThere) {
  HEDDLE_DEVICES_NEEDED(2);
  const std::string d0 = device_name(0), d1 = device_name(1);
  struct Legitimate {
    const char* because;
    std::function<void(NetBuilder&)> build;
  };
  const std::vector<Legitimate> all = {
      {"feed, wrong kind and mixed: a feed lies on the host and is copied to each device that reads it, as is what leaves the net",
       [&](NetBuilder& b) {
         const ValueId x = feed(b);
         for (const std::string& device : {d0, d1, host}) b.output(relu(b, device, "on " + device, x));
       }},
      {"control, wrong kind and mixed: nothing crosses along a control edge, fences make it hold between devices",
       [&](NetBuilder& b) {
         const ValueId x = feed(b);
         b.output(relu(b, d0, "first", x));
         b.output(relu(b, d1, "second", x));
         b.output(relu(b, host, "after", x));
         wait_for_first(b, 2);
       }},
      {"subnet, wrong kind: a device that is the host's",
       [&](NetBuilder& b) {
         b.output(branches(b, "y", feed(b), {"cpu", "cpu:0"}));
       }},
  };
  const Runtime runtime = device_runtime();
  for (const Legitimate& one : all) {
    SCOPED_TRACE(one.because);
    auto prepared = prepare(runtime, net_of(one.build), strict());
    ASSERT_TRUE(prepared.ok()) << prepared.status().text();
    EXPECT_TRUE(prepared->session.check().empty());
    const Status ran = prepared->context.run();
    EXPECT_TRUE(ran.ok()) << ran.text();
  }
}

// Findings include subnets whose types are not known before the run: no trip of them begins.
TEST_P(DeviceMisplacement, IsFoundInSubnetsOfUnknownExtents) {
  NetBuilder b("late");
  const ValueId limit = b.input("limit", DType::f32, Shape{});
  const ValueId range = b.add1("Range", "range", {b.constant_float("first", 0), limit, b.constant_float("step", 1)});
  b.output(branches(b, "y", range, {device_name(0)}));
  b.output(branches(b, "z", b.add1("Unique", "found", {feed(b)}), {nowhere}));
  auto session = device_runtime().open(b.finish(), silent());
  ASSERT_TRUE(session.ok()) << session.status().text();
  expect_found(errors(session->check()), {inside("y/inner0", device_name(0)), inside("z/inner0", nowhere)});
}

// A net with all findings that verify has: none hides another.
TEST_P(DeviceMisplacement, EverythingIsToldAtOnce) {
  HEDDLE_DEVICES_NEEDED(2);
  const std::string d0 = device_name(0), d1 = device_name(1);
  NetBuilder b("all");
  const ValueId x = feed(b), w = b.variable("w", whole_numbers(Shape{4}, 1, 1));
  const ValueId r = relu(b, d0, "r", x);
  b.output(relu(b, host, "back", r));
  b.output(relu(b, no_index(), "index", x));
  b.output(relu(b, nowhere, "unknown", r));
  b.output(on(b, d1, b.add1("Add", "mixed", {r, x})));
  b.output(branches(b, "if", x, {d0, nowhere}, &r));
  update(b, d1, "twice", update(b, d0, "once", w, x), x);
  b.output(on(b, d0, through(b, "no kernel", x)));
  std::vector<Wanted> wanted = {crossing("back", host, "r", d0),
                                missing("index", no_index(), {"\"x\""}),
                                missing("unknown", nowhere, {"\"r\" of \"" + d0 + "\""}),
                                crossing("mixed", d1, "r", d0),
                                crossing("if", host, "r", d0),
                                inside("if/inner0", d0),
                                inside("if/inner1", nowhere),
                                {Code::wrong_device, "twice", {"\"w\"", "\"" + d0 + "\"", "\"" + d1 + "\""}, "on one device"},
                                no_kernel("no kernel", d0)};
  auto session = device_runtime().open(b.finish(), strict());
  ASSERT_TRUE(session.ok()) << session.status().text();
  expect_found(errors(session->check()), wanted);
}

}  // namespace
}  // namespace heddle
