"""Where, by which builds and after which warm-up it was measured."""

import collections

from .markdown import NONE, number, table
from .measures import field
from .results import TITLES

FIGURES = {"fig6": "figure 6", "fig7": "figure 7", "fig11": "figure 11", "fig15": "figure 15", "fig16": "figure 16", "table3-no-retention": "table 3",
           "table4-no-hotness-check": "table 4", "table5-no-by-compaction": "table 5"}


def machine(results):
    hosts = collections.Counter((field(cell, "host", "cpu"), field(cell, "host", "cores"), field(cell, "host", "memory_bytes"),
                                 field(cell, "host", "kernel")) for cell in results.cells.values())
    probed = [number(field(results.probe, disk, size, "iops")) for disk, size in
              (("fast", "random_read_4k"), ("fast", "random_read_16k"), ("slow", "random_read_4k"), ("slow", "random_read_16k"))]
    rows = [[cpu or NONE, number(cores), number(memory, 1, " GB", 1e-9), kernel or NONE, *probed, str(cells)]
            for (cpu, cores, memory, kernel), cells in hosts.most_common()]
    table("Machine", ["processor", "cores", "memory", "kernel", "fast disk: reads of 4 KiB a second", "of 16 KiB", "slow disk: of 4 KiB", "of 16 KiB",
                      "cells"], rows, "Reads are the probe's, from 16 threads.")


def by_group(results, title, note, texts):
    """A row for each engine, a column for each figure; `texts` makes a text of the measured cells of both."""
    rows = []
    for engine in TITLES:
        names = [[name for name in results.names(engine, group) if name in results.cells] for group in FIGURES]
        if any(names):
            rows.append([engine, *(texts(of_group) if of_group else NONE for of_group in names)])
    table(title, ["engine", *FIGURES.values()], rows, note)


def commits(results):
    def commit(name):
        cell = results.cells[name]
        built, loaded = field(cell, "commit") or "not recorded", field(cell, "loaded_by", "commit")
        return built if loaded in (None, built) else f"{built}, loaded by {loaded}"

    def texts(names):
        counts = collections.Counter(map(commit, names)).most_common()
        return "; ".join(f"{commit} ({cells})" for commit, cells in counts) if len(counts) > 1 else counts[0][0]

    by_group(results, "Commits", "In brackets the number of cells.", texts)


def warm_ups(results):
    def length(name):
        cell = results.cells[name]
        seconds = field(cell, "warm_up_seconds")
        unlimited = " without limits" if "--after-warm-up" in (field(cell, "command") or "") else ""
        return "none" if seconds is None else f"{seconds:.0f} s{unlimited}"

    def texts(names):
        works = collections.defaultdict(list)
        for name in names:
            works[length(name)].append(results.work(name))
        usual, *others = sorted(works.items(), key=lambda item: -len(item[1]))
        return "; ".join([usual[0], *(f"{length} ({', '.join(of)})" for length, of in others)])

    by_group(results, "Warm-ups", "In brackets the cells that have another than the others.", texts)


def print_all(results):
    missing = results.missing()
    print(f"{len(results.cells)} of {len(results.engines)} cells are measured; wrong answers in all of them: "
          f"{sum(field(cell, 'wrong_answers') or 0 for cell in results.cells.values())}.")
    if missing:
        print(f"\nNot measured: {', '.join(missing)}.")
    machine(results)
    commits(results)
    warm_ups(results)
