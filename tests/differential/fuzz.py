#!/usr/bin/env python3
"""The differential fuzzer: ONNX models of one operator and of 3 to 18 nodes, run by Heddle and by onnxruntime, ONNX's reference implementation and
PyTorch. Started by tools/soak.sh --differential; README.md beside this file says what is compared and how differences are sorted.

    fuzz.py --driver PROGRAM [--cases N] [--seconds N] [--seed S] [--only CASE] [--operator NAME] [--graphs PERCENT] [--keep FOLDER] [--list]

Ends with 1 when there is a difference that classes.toml does not list.
"""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import time
import tomllib
import zlib

import numpy as np

import computing
import elementwise
import moving

HERE = pathlib.Path(__file__).parent
OPERATORS = {**elementwise.OPERATORS, **moving.OPERATORS, **computing.OPERATORS}

if "--list" in sys.argv:
    print("\n".join(sorted(OPERATORS)))
    sys.exit()

import compare
import graphs
import judges
from cases import Generator, NotPossible, name_of
from heddle import Driver, Failure

try:
    import torch_judge
except ImportError:
    torch_judge = None

ALONE = 4  # of this many cases of an operator that onnxruntime judged, PyTorch judges one too


class Classes:
    """classes.toml: what a difference must be like to belong to a class."""

    def __init__(self):
        self.rows = tomllib.loads((HERE / "classes.toml").read_text())["class"]
        for row in self.rows:
            row["compiled"] = compile(row.get("when", "True"), row["id"], "eval")
            row["operators"] = row["operators"].split() if isinstance(row["operators"], str) else row["operators"]

    def find(self, difference):
        for row in self.rows:
            if difference.op not in row["operators"] and row["operators"] != ["*"]:
                continue
            if difference.kind not in row["kinds"].split() or not any(difference.judge.startswith(j) for j in row["judges"].split()):
                continue
            try:
                if eval(row["compiled"], {"np": np, "prod": np.prod, "name_of": name_of, **difference.facts()}):
                    return row["id"]
            except Exception:  # a fact that this case has not: not this class
                continue
        return None


class Difference:
    """kind: value, special, shape, dtype, count, heddle-refuses, crash, hang."""

    def __init__(self, case, judge, kind, words, ours=None, theirs=None, second=None):
        self.case, self.judge, self.kind, self.words = case, judge, kind, words
        self.op, self.ours, self.theirs, self.second = case.features["op"], ours, theirs, second
        self.torch_agrees = False

    def facts(self):
        f = self.case.features
        inputs = f["inputs"]
        present = [a for a in inputs if a is not None]
        values = np.concatenate([np.asarray(a).astype("f8").reshape(-1) for a in present]) if present else np.zeros(0)
        finite = values[np.isfinite(values)]
        both = self.ours is not None and self.theirs is not None
        return {"op": self.op, "a": {k: v.decode() if isinstance(v, bytes) else v for k, v in f["attributes"].items()}, "opset": f["opset"], "inputs": inputs,
                "x": inputs[0] if inputs else None, "dtypes": [name_of(p.dtype) for p in present], "constant": f["constant"],
                "dtype": name_of(present[0].dtype) if present else "", "nodes": [n.op_type for n in self.case.nodes],
                "has_nan": bool(np.isnan(values).any()), "has_inf": bool(np.isinf(values).any()), "odd": finite.size != values.size,
                "largest": float(np.abs(finite).max()) if finite.size else 0.0, "empty": any(p.size == 0 for p in present),
                "ours": self.ours, "theirs": self.theirs, "distance": compare.distance(self.ours, self.theirs) if both else np.inf,
                "words": self.words, "second": self.second, "torch_agrees": self.torch_agrees}

    def key(self):
        dtypes = [name_of(a.dtype) for a in self.case.features["inputs"] if a is not None]
        return f"{self.op} | {dtypes[0] if dtypes else '-'} | {self.kind} | {self.judge}" + (f" | {self.second}" if self.second else "")


NUDGES = (None, 1, 2)  # how last_bit moves


def last_bit(array, nudge=None):
    """Floats next to those of an array, above all of them or, by the seed `nudge`, two above or below each; what is zero or not finite stays."""
    if array.dtype not in (np.dtype("f4"), np.dtype("f8")):
        return array
    if nudge is None:
        moved = np.nextafter(array, np.inf)
    else:
        to = np.where(np.random.default_rng(nudge).random(array.shape) < 0.5, -np.inf, np.inf).astype(array.dtype)
        moved = np.nextafter(np.nextafter(array, to), to)
    return np.where(np.isfinite(moved) & np.isfinite(array) & (array != 0), moved, array)


class Fuzzer:
    def __init__(self, options):
        self.options, self.driver, self.classes = options, Driver(options.driver), Classes()
        self.count = collections.Counter()
        self.classified = collections.Counter()
        self.unclassified = {}
        self.unjudged = collections.Counter()
        self.judged = collections.Counter()
        self.torch = torch_judge is not None and not options.no_torch

    # ------------------------------------------------------------ one operator
    def single(self, seed, op):
        for attempt in range(20):
            g = Generator(seed * 31 + attempt)
            try:
                g.begin(op)
                outputs = OPERATORS[op](g)
            except (NotPossible, ValueError, IndexError):
                continue
            if outputs is not None:
                case = g.case(outputs)
                case.number = seed
                return case
        return None

    def heddle(self, case):
        try:
            return self.driver.run(case.model().SerializeToString(), list(case.inputs.values()))
        except Failure as failure:
            return failure

    def judge(self, case, ours):
        """The differences of a case with one node; counts what was agreed."""
        op = case.features["op"]
        found, judged, refusals = [], 0, []
        if isinstance(ours, Failure) and ours.stage in ("crash", "hang"):
            return [Difference(case, "heddle", ours.stage, ours.text)]
        scale = compare.input_scale(case) if op in compare.SUMS else 0.0
        for name, ask in judges.opinions(case):
            if judged:
                break
            try:
                theirs = ask()
            except judges.Refused as refusal:
                refusals.append(str(refusal))
                continue
            judged += 1
            found += self.one_opinion(case, name, ours, theirs, scale)
        if found and found[0].judge.startswith("onnxruntime") and not isinstance(ours, Failure):
            try:
                second = compare.compare(op, ours, judges.run_reference(case.model(), case.inputs), scale)
                found[0].second = "reference agrees" if second is None else "reference differs"
            except judges.Refused:
                pass
        if self.torch and op in torch_judge.FUNCTIONS and (not judged or found or case.seed % ALONE == 0):
            try:
                theirs = torch_judge.run_torch(case)
                judged += 1
                self.count["torch"] += 1
                further = self.one_opinion(case, "torch", ours, theirs, scale)
                for difference in found:
                    difference.torch_agrees = not further
                found += further
            except judges.Refused:
                pass
        if judged:
            self.judged[op] += 1
        elif isinstance(ours, Failure):
            self.count["refused by all"] += 1
        else:
            self.count["no judge"] += 1
            self.unjudged[op] += 1
        return found

    def one_opinion(self, case, name, ours, theirs, scale):
        if isinstance(ours, Failure):
            return [Difference(case, name, "heddle-refuses", f"{ours.stage} {ours.code}: {ours.text}", None, theirs)]
        try:
            found = compare.compare(case.features["op"], ours, theirs, scale)
        except (KeyError, ValueError) as error:
            found = ("dtype", str(error))
        return [Difference(case, name, *found, ours, theirs)] if found else []

    # ------------------------------------------------------------ graphs
    def graph(self, seed):
        for attempt in range(5):
            try:
                case = graphs.Graph(seed * 31 + attempt, OPERATORS).make()
                case.number = seed
                return case
            except NotPossible:
                continue
        return None

    def judge_graph(self, case, ours):
        """Differences of a graph: those of its nodes, each alone on the same operands; and what the graph computes otherwise than its nodes do
        one by one in Heddle."""
        if isinstance(ours, Failure) and ours.stage in ("crash", "hang"):
            return [Difference(case, "heddle", ours.stage, ours.text)]
        if not isinstance(ours, Failure) and compare.compare("Conv", ours, case.expected, 0.0) is None:
            return []
        found, chain, nudged = [], {}, {n: {} for n in NUDGES}
        for node in case.nodes:
            alone = graphs.alone(case, node, case.values)
            alone.number = case.number
            found += self.judge(alone, self.heddle(alone))
            step = self.heddle(graphs.alone(case, node, {**case.values, **chain}))
            if not isinstance(step, Failure):
                chain.update(zip([o for o in node.output if o], step))
            for nudge, values in nudged.items():
                step = self.heddle(graphs.alone(case, node, {**case.values, **values}))
                if not isinstance(step, Failure):
                    values.update(zip([o for o in node.output if o], (last_bit(array, nudge) for array in step)))
        if isinstance(ours, Failure):
            return found or [Difference(case, "onnxruntime", "heddle-refuses", f"{ours.stage} {ours.code}: {ours.text}")]
        expected = [chain.get(n) for n in case.outputs]
        if any(e is None for e in expected):
            return found
        # Rounding grows from node to node, and jumps where a node does; nodes alone have been compared above.
        fused = self.fused_difference(case, ours, expected, [[values.get(n) for n in case.outputs] for values in nudged.values()])
        if fused:
            return found + [Difference(case, "its nodes one by one", *fused, ours, expected)]
        self.count["only rounding"] += not found
        return found

    def fused_difference(self, case, ours, expected, nudged_nodes):
        """None where the graph differs from its nodes by no more than these do from themselves when the last bits of their results, or of
        all inputs and constants, are others."""
        found = compare.compare("Conv", ours, expected, 0.0, 4.0)
        if found is None or found[0] in ("shape", "dtype", "count"):
            return found if found and not self.dynamic(case) else found
        kept = case.inputs, case.constants
        nudged_inputs = []
        for nudge in NUDGES:
            case.inputs = {n: last_bit(a, nudge) for n, a in kept[0].items()}
            case.constants = {n: last_bit(a, nudge) if a.size > 1 else a for n, a in kept[1].items()}
            nudged_inputs.append(self.heddle(case))
        case.inputs, case.constants = kept
        if any(isinstance(n, Failure) for n in nudged_inputs):
            return found
        for i, (a, b) in enumerate(zip(ours, expected)):
            one = compare.differs("Conv", a, b, 0.0, 4.0)
            if one is None:
                continue
            others = [(n[i], a) for n in nudged_inputs] + [(n[i], b) for n in nudged_nodes if n[i] is not None]
            moves = [n.shape != a.shape or compare.differs("Conv", was, n, 0.0, 1.0) for n, was in others]
            if not any(moves):
                return one[0], f"output {i}: {one[1]}"
        return None

    @staticmethod
    def dynamic(case):
        return any(n.op_type in ("NonZero", "Unique", "Compress", "Loop") for n in case.nodes)

    # ------------------------------------------------------------ the campaign
    def run_case(self, number):
        o = self.options
        seed = zlib.crc32(f"{o.seed}.{number}".encode()) * 4294967296 + number
        is_graph = seed // 4294967296 % 100 < o.graphs and not o.operator
        if is_graph:
            case = self.graph(seed)
        else:
            names = [o.operator] if o.operator else sorted(OPERATORS)
            case = self.single(seed, names[number % len(names)])
        if case is None:
            self.count["not made"] += 1
            return
        case.number = number
        self.count["graphs" if is_graph else "operators"] += 1
        if is_graph:
            self.count["nodes of graphs"] += len(case.nodes)
        try:
            case.model().SerializeToString()
        except ValueError:
            self.count["not made"] += 1
            return
        ours = self.heddle(case)
        found = self.judge_graph(case, ours) if is_graph else self.judge(case, ours)
        if not found:
            self.count["agreed"] += 1
        for difference in found:
            which = self.classes.find(difference)
            if which:
                self.classified[which] += 1
            elif number not in o.ignored:
                self.report(difference, number)
        if found and all(self.classes.find(d) for d in found):
            self.count["classified"] += 1

    def report(self, difference, number):
        key = difference.key()
        self.count["unclassified"] += 1
        known = self.unclassified.setdefault(key, [])
        known.append(number)
        if len(known) > 3:
            return
        folder = pathlib.Path(self.options.keep)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"differential-{self.options.seed}-{number}.onnx"
        whole = difference.case
        path.write_bytes(whole.model().SerializeToString())
        np.savez(str(path.with_suffix(".npz")), **{n: a if a.dtype.kind != "V" else a.astype("f4") for n, a in whole.inputs.items()})
        shapes = [f"{name_of(a.dtype)}{list(a.shape)}" if a is not None else "-" for a in whole.features["inputs"]]
        print(f"case {number}: {key}\n  {difference.words[:600]}\n  opset {whole.opset} {dict(whole.features['attributes'])} {' '.join(shapes)}"
              f" {''.join('cr'[not c] for c in whole.features['constant'])}\n  nodes {' '.join(n.op_type for n in whole.nodes)}\n  {path}", flush=True)

    def run(self):
        o = self.options
        begin, number = time.monotonic(), o.only if o.only is not None else o.first
        last = number + 1 if o.only is not None else o.first + o.cases
        while number < last and time.monotonic() - begin < o.seconds:
            self.run_case(number)
            number += 1
            if o.stop_at_first and self.unclassified:
                break
        if o.write_unclassified:
            numbers = sorted({n for list_ in self.unclassified.values() for n in list_})
            pathlib.Path(o.write_unclassified).write_text("".join(f"{n}\n" for n in numbers))
        self.summary(number - (o.only if o.only is not None else o.first), time.monotonic() - begin)
        return 1 if self.unclassified else 0

    def summary(self, cases, seconds):
        print(f"differential: seed {self.options.seed}, {cases} cases in {seconds:.0f} s, {cases / max(seconds, 1e-9):.0f} a second")
        for name in ("operators", "graphs", "nodes of graphs", "agreed", "classified", "only rounding", "refused by all", "no judge", "not made", "torch"):
            print(f"  {name}: {self.count[name]}")
        for name, count in sorted(self.classified.items()):
            print(f"  class {name}: {count}")
        if not self.options.operator and cases > 3000:
            never = [op for op in sorted(OPERATORS) if not self.judged[op] and op not in NOT_JUDGED]
            print(f"  operators never judged: {' '.join(never) or 'none'}")
        for op, count in self.unjudged.most_common(20):
            print(f"  without a judge: {op} {count}")
        print(f"  unclassified: {self.count['unclassified']} differences of {len(self.unclassified)} kinds")
        for key, numbers in sorted(self.unclassified.items()):
            print(f"    {key}: {len(numbers)}, cases {' '.join(map(str, numbers[:5]))}")


NOT_JUDGED = {"Multinomial"}


def check_operators(driver):
    """Every operator that importer and plugin both have is made here, and operators.txt, which a ctest compares with them, says which are."""
    if (HERE / "operators.txt").read_text().split() != sorted(OPERATORS):
        sys.exit("tests/differential/operators.txt is not what is made: fuzz.py --list > operators.txt")
    have = set(subprocess.run([driver, "--operators"], capture_output=True, text=True, check=True).stdout.split())
    missing = sorted(have - set(OPERATORS))
    if missing:
        sys.exit(f"Heddle has operators that tests/differential does not make: {' '.join(missing)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--cases", type=int, default=50000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=7200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--operator")
    parser.add_argument("--graphs", type=int, default=25)
    parser.add_argument("--keep", default="build/soak")
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--stop-at-first", action="store_true")
    parser.add_argument("--ignore", help="a file of case numbers whose differences are known")
    parser.add_argument("--write-unclassified", help="the file for the numbers of cases with unclassified differences")
    options = parser.parse_args()
    options.ignored = set(map(int, pathlib.Path(options.ignore).read_text().split())) if options.ignore else set()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    check_operators(options.driver)
    np.seterr(all="ignore")
    sys.exit(Fuzzer(options).run())


if __name__ == "__main__":
    main()
