"""What a case costs, from a journal: python3 times.py JOURNAL.jsonl[.gz]

All of a case is from its start in the parent to its verdict: the worker, the copies, the reference
and the comparison included. The plugin's own time is planning and execution until the device is
idle; what remains is the harness's.
"""
import gzip
import json
import statistics
import sys

opened = gzip.open if sys.argv[1].endswith(".gz") else open
whole, plugin, rest = [], [], []
for line in opened(sys.argv[1], "rt"):
    record = json.loads(line)
    if record["record"] != "case-end" or record.get("depth") != "judged":
        continue
    times = record["times"]
    calls = times["plan_ms"] + times["first_ms"]
    reference = (times["reference_ms"] or 0) + (times["comparison_ms"] or 0)
    whole.append(times["total_ms"])
    plugin.append(calls)
    rest.append(max(0.0, times["total_ms"] - max(calls, reference)))
for name, values in (("all of a case", whole), ("the plugin's calls", plugin), ("the rest", rest)):
    values.sort()
    at = lambda share: values[int(share * (len(values) - 1))]
    print(f"{name}: median {statistics.median(values):.2f} ms, 90 % below {at(0.9):.2f} ms")
