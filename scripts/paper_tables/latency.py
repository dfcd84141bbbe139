"""Figure 8: latencies of reads under hotspot-5."""

from .markdown import NONE, last_and_whole, number, table
from .measures import BOUND, field, load_of_slow_disk, of_reads, waits_for_slow_disk
from .results import TITLES


def print_all(results):
    rows, bound = [], []
    for workload in ("ro", "rw", "wh", "uh"):
        for engine, title in TITLES.items():
            cell = results.get("fig6", engine, workload, "hotspot-5")
            if cell is None:
                continue
            if waits_for_slow_disk(cell, results.probe):
                bound.append(f"{title}, {workload} ({100 * load_of_slow_disk(cell, results.probe):.0f} %)")
                continue
            whole, last = of_reads(field(cell, "latencies")), of_reads(field(cell, "last_tenth", "latencies"))
            rows.append([workload, title, *(last_and_whole(number, field(last, name), field(whole, name)) for name in ("p50_us", "p99_us", "p999_us"))])
    table("Figure 8, latencies of reads under hotspot-5, in µs", ["run", "engine", "median", "99 %", "99.9 %"], rows,
          f"Of the last tenth (whole run); “{NONE}” was not recorded. Left out are those that wait for the slow disk, as the queue before it is all "
          f"that their latencies say; behind each what it did of the limit, and {100 * BOUND:.0f} % is waiting: {'; '.join(bound) or 'none'}.", labels=2)
