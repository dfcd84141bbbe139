"""What the engines take beside time: memory, reads of the slow disk, bytes written, room. And what bounds RocksDB all on the fast disk."""

from .markdown import NONE, between, number, percent, table
from .measures import field, held_back, over, processor_share, slow_reads
from .results import CLUSTERS, FAST_ONLY, TITLES
from .throughput import FIGURE_16, FIGURE_6, FIGURE_7

FIGURE_11 = [("fig11", "cluster", cluster) for cluster in CLUSTERS]
LENGTHS = {"fig7": ", 200 bytes"}


def label(group, workload, distribution):
    return f"{workload} {distribution}{LENGTHS.get(group, '')}"


def by_engine(results, title, runs, show, note="", without=()):
    """A row for each run, a column for each engine. Runs of which nobody tells are left out."""
    engines = [engine for engine in TITLES if engine not in without]
    rows = []
    for group, workload, distribution in runs:
        row = [show(results.get(group, engine, workload, distribution)) for engine in engines]
        if any(text != NONE for text in row):
            rows.append([label(group, workload, distribution), *row])
    table(title, ["run", *(TITLES[engine] for engine in engines)], rows, note)


def peak_memory(results):
    kinds = [("ro hotspot-5", [("fig6", "ro", "hotspot-5")]), ("figure 6", FIGURE_6), ("figure 7, 200 bytes", FIGURE_7), ("figure 11, clusters", FIGURE_11),
             ("figure 15, stages", [("fig15", "ro", "dynamic@300s")]), ("figure 16", FIGURE_16)]
    rows = [[kind, *(between([field(results.get(group, engine, *work), "max_rss_bytes") for group, *work in runs], " MB", 1e-6) for engine in TITLES)]
            for kind, runs in kinds]
    table("Memory of the process at most", ["runs", *TITLES.values()], rows)


def fast_only(results):
    probed = field(results.probe, "fast", "random_read_16k", "iops")
    rows = []
    for group, workload, distribution in FIGURE_6 + FIGURE_7:
        cell = results.get(group, FAST_ONLY, workload, distribution)
        blocks = over(field(cell, "io_by_activity", "fast", "read", "read_ops"), field(cell, "seconds"))
        # Each client waits for its answer before it asks again.
        time = over(field(cell, "threads"), field(cell, "ops_s"))
        rows.append([label(group, workload, distribution), number(blocks), percent(over(blocks, probed), 0), number(time, 0, " µs", 1e6),
                     percent(processor_share(cell), 0)])
    table("What RocksDB all on the fast disk waits for", ["run", "blocks read a second", "of the probe's reads of 16 KiB", "time of an operation",
                                                          "of the processor"], rows,
          f"The probe has {number(probed)} such reads a second, of {number(field(results.probe, 'fast', 'random_read_16k', 'mean_us'))} µs each.")


def print_all(results):
    written = [run for run in FIGURE_6 + FIGURE_7 if run[1] != "ro"]
    peak_memory(results)
    by_engine(results, "Reads of the slow disk an operation", FIGURE_6 + FIGURE_7 + FIGURE_16, lambda cell: number(slow_reads(cell), 3),
              "Compactions' too, where something is written.", without=(FAST_ONLY,))
    by_engine(results, "Processor time of an operation, in µs", FIGURE_6 + FIGURE_7 + FIGURE_16, lambda cell: number(field(cell, "cpu_us_per_op"), 1))
    fast_only(results)
    by_engine(results, "Bytes written for each byte handed in", written + FIGURE_11, lambda cell: number(field(cell, "write_amplification"), 1))

    def held(cell):
        seconds = field(cell, "stall_seconds")
        return NONE if seconds is None else f"{number(seconds, 1, ' s')} ({percent(held_back(cell))})"

    by_engine(results, "Writers held back", written + FIGURE_11, held, "Seconds of all of them (of the clients' time). RocksDB does not tell.")

    def room(cell):
        sizes = [field(cell, name) for name in ("fd_bytes", "sd_bytes")]
        return NONE if None in sizes else " + ".join(number(size, 2, "", 1e-9) for size in sizes)

    by_engine(results, "On the fast and on the slow disk at the end, in GB", FIGURE_6 + FIGURE_7 + FIGURE_11 + FIGURE_16, room)
