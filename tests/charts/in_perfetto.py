#!/usr/bin/env python3
"""in_perfetto.py HEDDLE: reads traces with Perfetto's own trace processor (PyPI's `perfetto`) and compares what its queries say with the files.

HEDDLE_TRACE_PROCESSOR names a trace_processor_shell, such as one that was built from Perfetto's sources; otherwise the module downloads one
at its first use. Skipped where there is no module or no trace processor.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


try:
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
except ImportError as error:
    skip(f"PyPI's perfetto is not installed ({error})")


def rows(processor, query):
    return list(processor.query(query))


def check(name, path):
    """Compares one trace; returns the number of its slices."""
    events = json.loads(path.read_text())["traceEvents"]
    work = [event for event in events if event["ph"] == "X"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    program = os.environ.get("HEDDLE_TRACE_PROCESSOR")
    try:
        processor = TraceProcessor(trace=str(path), config=TraceProcessorConfig(bin_path=program))
    except Exception as error:  # a download fails in many ways
        assert not program, f"{program}: {error}"
        skip(f"no trace processor: {error}")
    errors = rows(processor, "select name, value from stats where severity = 'error' and value > 0")
    assert not errors, f"{name}: {[(row.name, row.value) for row in errors]}"
    slices = rows(processor, "select slice.name as name, ts, dur, thread.name as thread from slice join thread_track on slice.track_id = "
                             "thread_track.id join thread using (utid) where slice.category != '' order by ts, dur, name")
    assert len(slices) == len(work), f"{name}: {len(slices)} slices of {len(work)} events"
    for row, event in zip(slices, sorted(work, key=lambda e: (e["ts"], e["dur"], e["name"]))):
        assert row.name == event["name"], f"{name}: {row.name} where {event['name']} is"
        assert row.thread == names[event["tid"]], f"{name}: {row.name} in {row.thread}, not {names[event['tid']]}"
        assert (row.ts, row.dur) == (round(event["ts"] * 1000), round(event["dur"] * 1000)), f"{name}: {row.name} at {row.ts}"
    overlapping = rows(processor, "select count(*) as n from slice a join slice b on a.track_id = b.track_id and a.id < b.id and a.ts < b.ts "
                                  "+ b.dur and b.ts < a.ts + a.dur")[0].n
    assert overlapping == 0, f"{name}: {overlapping} slices of one track overlap"
    processor.close()
    return len(slices)


heddle = sys.argv[1]
with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    for recipe, more in (("lenet", []), ("resnet18", ["--threads", "2"]), ("encoder", ["--threads", "4"]),
                         ("lenet", ["--device", "sim:0", "--copies", "auto"])):
        net, trace = work / "net.heddle", work / "trace.json"
        subprocess.run([heddle, "model", recipe, "-o", net, "--quiet"], check=True)
        subprocess.run([heddle, "run", net, "--random", "1", "--repeat", "3", "--trace", trace, "--quiet", *more], check=True)
        print(f"{' '.join([recipe, *more])}: {check(recipe, trace)} slices")
