#!/usr/bin/env python3
"""Plants bugs by seed into the kernels of the CPU plugin, one at a time, and says which of them the conformance suite finds.

    planted.py --build FOLDER [--seed S] [--count N] [--kind K] [--list]

FOLDER holds a copy of the sources and a build of them (tools/soak.sh --kernels makes both). A bug is one change of one line of a kernel,
of the kinds below, drawn evenly. What is not found is printed as a diff: either no call can tell it from the original (say so in
equivalent.txt beside this script, with the reason: such lines are not drawn again), or the suite lacks a call. Ends with 1 when less than
96 of 100 are found.
"""
import argparse
import pathlib
import random
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OTHER_TYPE = {"int8_t": "uint8_t", "uint8_t": "int8_t", "int16_t": "uint16_t", "uint16_t": "int16_t", "int32_t": "uint32_t",
              "uint32_t": "int32_t", "int64_t": "int32_t", "uint64_t": "int64_t", "float": "f16", "double": "float", "f16": "bf16",
              "bf16": "f16"}


def of_type(match):
    return match.group(0).replace(match.group(1), OTHER_TYPE[match.group(1)])


OTHER_DTYPE = {"F16": "BF16", "BF16": "F16", "F32": "F64", "F64": "F32", "I32": "I64", "I64": "I32", "U8": "BOOL", "BOOL": "U8"}


def of_dtype(match):
    return match.group(0).replace(match.group(1), OTHER_DTYPE[match.group(1)])


# Kind: patterns and what stands in their place.
KINDS = {
    "tail element": [(r"(for \(.*; (\w+)) < ([^;]+; )", r"\1 + 1 < \3")],
    "stride": [(r"(\+ \w+) \* (after|stride|row_bytes_|bound_|columns|width|\w+_(?:stride|row|column|step)s?(?:_|\[\w+\])?)\b", r"\1"),
               (r"(\w+) \* (after|\w*stride\w*)\b(?! =)", r"\1 * (\2 + 1)"),
               (r"(\w+) / (after|inner|columns|count_)\b", r"\1 / std::max<int64_t>(\2 - 1, 1)")],
    "dtype path": [(r"Tag<(u?int\d+_t|float|double|bf16|f16)>\(\)", of_type), (r"== HEDDLE_(F16|BF16|F32|F64|I32|I64|U8|BOOL)\b", of_dtype),
                   (r"is_same_v<T, (float|double|f16|bf16|u?int\d+_t)>", of_type), (r"Arithmetic<T>\(0\)", "Arithmetic<T>(1)")],
    "empty shape": [(r"(\w*(?:count|size|rows|columns|extent|elements|height|width|total|bytes|depth|length)\w*(?:\[\w+\])?) == 0\b", r"\1 == 1"),
                    (r"std::max<int64_t>\((\w+), 1\)", r"\1"),
                    (r"std::max<int64_t>\(1, ", "std::max<int64_t>(0, "), (r"element_count > 0\b", "element_count > 1")],
    "tile boundary": [(r"\b(range)\.first\b", r"(\1.first + (\1.first > 0))"), (r"\b(range)\.last\b", r"(\1.last - (\1.last > \1.first + 1))"),
                      (r"(\w+ = begin) ([*;])", r"\1 + (begin > 0) \2"), (r"(\w+) < end\b", r"\1 + 1 < end")],
}


def operators_by_file(root):
    table = {}
    for line in (root / "docs/operators/README.md").read_text().splitlines():
        row = re.match(r"\| \[(?:\w+::)?(\w+)\]\(.*\| `plugins/cpu/([^`]+)` \|$", line)
        if row:
            table.setdefault(row.group(2), []).append(row.group(1))
    return table


def kernel_lines(path):
    """The lines of what runs: from the first line to the declarations, inference, costs and messages aside."""
    skip = re.compile(r"invalid\(|unsupported\(|set_cost|set_flops|set_bytes|^\s*//|^#|\.plan\(|check_|static_assert|cost")
    in_rule = False
    for number, line in enumerate(path.read_text().splitlines()):
        if line.startswith("void add_"):
            return
        rule = re.match(r"( *)(?:static |inline )*(?:Status|void|double|std::vector<\w+>) \w*(infer|cost|extents|formats|subnets)\w*\(", line)
        if rule and not line.rstrip().endswith("}"):
            in_rule, end = True, rule.group(1) + "}"
        if in_rule and line == end:
            in_rule = False
        if not in_rule and not skip.search(line):
            yield number, line


def sites(root, equivalent):
    found = {kind: [] for kind in KINDS}
    for path in sorted((root / "plugins/cpu").rglob("*")):
        if path.suffix not in (".cc", ".h") or path.parent == root / "plugins/cpu" or "cost.h" in path.name:
            continue
        for number, line in kernel_lines(path):
            for kind, patterns in KINDS.items():
                for pattern, instead in patterns:
                    for match in re.finditer(pattern, line):
                        piece = instead(match) if callable(instead) else match.expand(instead)
                        changed = line[: match.start()] + piece + line[match.end():]
                        if (str(path.relative_to(root)), changed.strip()) not in equivalent:
                            found[kind].append((path, number, changed))
    return found


def in_place_sites(root, equivalent):
    """Declarations that do not allow to compute in place, allowing it."""
    found = []
    for path in sorted((root / "plugins/cpu").rglob("*.cc")):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            op = re.search(r'Op\("(\w+)"', line)
            if not op:
                continue
            block = []
            for following in lines[number:]:
                block.append(following)
                if following.rstrip().endswith(";"):
                    break
            text = "\n".join(block)
            first = re.search(r'\.in\("(\w+)"', text)
            out = re.search(r'\.out\("(\w+)"', text)
            at = next((i for i, b in enumerate(block) if out and out.group(0) in b), None)
            if not first or at is None or ".in_place(" in text or ".updates(" in text or at == 0:
                continue
            # in_place() names ports that are declared already.
            ports = re.search(r"\.out\((?:[^()]|\([^()]*\))*\)", block[at])
            if not ports:
                continue
            changed = block[at][: ports.end()] + f'.in_place("{out.group(1)}", "{first.group(1)}")' + block[at][ports.end():]
            if (str(path.relative_to(root)), changed.strip()) not in equivalent:
                found.append((path, number + at, changed))
    return found


def read_equivalent():
    pairs = set()
    for line in (HERE / "equivalent.txt").read_text().splitlines():
        if line and not line.startswith("#") and "\t" in line:
            file, changed = line.split("\t")[:2]
            pairs.add((file, changed))
    return pairs


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def test(build, filters):
    return run([f"{build}/bin/heddle_conformance_tests", f"--gtest_filter={filters}", "--gtest_fail_fast"], timeout=600)


def examine(root, build, filters):
    made = run(["ninja", "-C", build, "cpu"])
    if made.returncode != 0:
        return "does not compile", made.stdout
    try:
        tested = test(build, filters)
    except subprocess.TimeoutExpired:
        return "found", "it hangs"
    if tested.returncode == 0:
        return "NOT FOUND", ""
    told = re.search(r'Which is: "(.*)', tested.stdout)
    return "found", told.group(1)[:160] if told else f"exit status {tested.returncode}: {tested.stdout.strip().splitlines()[-1][:120]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--kind", help="bugs of this kind alone")
    parser.add_argument("--list", action="store_true", help="say how many lines there are of each kind, and end")
    arguments = parser.parse_args()
    root, build = pathlib.Path(arguments.build) / "source", f"{arguments.build}/build"
    equivalent = read_equivalent()
    by_kind = sites(root, equivalent)
    by_kind["in place"] = in_place_sites(root, equivalent)
    if arguments.kind:
        by_kind = {arguments.kind: by_kind[arguments.kind]}
    if arguments.list:
        for kind, list_of in by_kind.items():
            print(f"{kind}: {len(list_of)} places")
        return 0
    made = run(["ninja", "-C", build, "cpu", "heddle_conformance_tests"])
    unchanged = made if made.returncode != 0 else test(build, "*")
    if unchanged.returncode != 0:
        print(f"The suite fails without any bug planted:\n{unchanged.stdout[-3000:]}")
        return 2
    dice = random.Random(arguments.seed)
    table = operators_by_file(root)
    for list_of in by_kind.values():
        dice.shuffle(list_of)
    found = missed = 0
    while found + missed < arguments.count:
        by_kind = {kind: list_of for kind, list_of in by_kind.items() if list_of}
        if not by_kind:
            print("There are no more places to plant bugs in.")
            break
        kind = list(by_kind)[(found + missed) % len(by_kind)]
        path, number, changed = by_kind[kind].pop()
        relative = path.relative_to(root / "plugins/cpu")
        operators = [name for file, names in table.items() if file.split("/")[0] == relative.parts[0] for name in names]
        shared = relative.suffix == ".h" or relative.parts[0] in ("support", "vector", "onednn", "pointwise")  # epilogues are pointwise programs
        filters = "*" if shared else ":".join(f"*/{name}:*_{name}" for name in operators)
        original = path.read_text()
        lines = original.splitlines()
        before, lines[number] = lines[number], changed
        path.write_text("\n".join(lines) + "\n")
        try:
            verdict, told = examine(root, build, filters)
        finally:
            path.write_text(original)
        if verdict == "does not compile":
            continue
        found += verdict == "found"
        missed += verdict != "found"
        print(f"{found + missed:3} {verdict}: {kind}, plugins/cpu/{relative}:{number + 1}: {told}", flush=True)
        print(f"    - {before.strip()}\n    + {changed.strip()}", flush=True)
    print(f"{found} of {found + missed} found, seed {arguments.seed}")
    return 0 if found >= 0.96 * (found + missed) else 1


if __name__ == "__main__":
    sys.exit(main())
