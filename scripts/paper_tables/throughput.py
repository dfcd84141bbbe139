"""Figures 6, 7 and 16: operations a second and hit rates beside the rivals'. And other stores, on two cells."""

from .markdown import NONE, number, table
from .measures import hits, operations, ratio, slow_reads
from .results import FAST_ONLY, FLASH_CACHE, HOTRAP, ROCKSDB, TITLES

FIGURE_6 = [("fig6", workload, distribution) for workload in ("ro", "rw", "wh", "uh") for distribution in ("hotspot-5", "zipfian:0.99", "uniform")]
FIGURE_7 = [("fig7", workload, distribution) for distribution in ("hotspot-5", "uniform") for workload in ("ro", "rw")]
FIGURE_16 = [("fig16", "ro", "hotspot-1")]


def figure(results, title, runs):
    rows = []
    for group, workload, distribution in runs:
        ours, tiered, fast, cache = (results.get(group, engine, workload, distribution) for engine in (HOTRAP, ROCKSDB, FAST_ONLY, FLASH_CACHE))
        rows.append([f"{workload} {distribution}", operations(ours), hits(ours), operations(tiered), ratio(ours, tiered), operations(fast),
                     ratio(ours, fast), operations(cache), hits(cache)])
    table(title, ["run", "hotrap", "hit rate", TITLES[ROCKSDB], "ratio", TITLES[FAST_ONLY], "ratio to it", "flash cache", "its hit rate"], rows)


def other_stores(results):
    engines = list(TITLES)
    rows = []
    for workload in ("ro", "rw"):
        cells = [results.get("fig6", engine, workload, "hotspot-5") for engine in engines]
        for what, show in (("", operations), (", hit rate", hits), (", reads of the slow disk an operation", lambda cell: number(slow_reads(cell), 3))):
            row = [show(cell) for cell in cells]
            if any(text != NONE for text in row):
                rows.append([f"{workload} hotspot-5{what}", *row])
    table("Other stores, and none", ["run", *TITLES.values()], rows)


def print_all(results):
    figure(results, "Figure 6", FIGURE_6)
    other_stores(results)
    figure(results, "Figure 7, records of 200 bytes", FIGURE_7)
    figure(results, "Figure 16, a slow disk of 400 operations a second", FIGURE_16)
