"""Figure 11: reads and writes fitted to seven of Twitter's clusters."""

from .markdown import NONE, megabytes, number, percent, table
from .measures import field, held_back, hits, loading, operations, over, ratio, slow_reads, write_share
from .results import CLUSTERS, HOTRAP, ROCKSDB


def print_all(results):
    speed, costs, loads = [], [], []
    for cluster in CLUSTERS:
        ours, theirs = cells = [results.get("fig11", engine, "cluster", cluster) for engine in (HOTRAP, ROCKSDB)]
        known = ours or theirs

        def both(show, *path, decimals=1):
            return [show(field(cell, *path), decimals) for cell in cells]

        speed.append([str(cluster), number(field(known, "record_bytes"), 0, " B"), percent(write_share(known), 0), operations(ours),
                      operations(theirs), ratio(ours, theirs), hits(ours), *both(percent, "dram_hit_rate"), percent(held_back(ours))])
        costs.append([str(cluster), *both(number, "cpu_us_per_op"), number(over(*(field(cell, "write_amplification") for cell in cells)), 2),
                      *(number(slow_reads(cell), 3) for cell in cells), *both(megabytes, "fd_bytes", decimals=0)])
        loads.append([str(cluster), *(number(loading(cell), 0, " s") for cell in cells), *both(number, "load_write_amplification")])
    table("Figure 11, clusters", ["cluster", "record", "writes", "hotrap", "RocksDB, level-tiered", "ratio", "hit rate", "answered from memory: hotrap",
                                  "RocksDB", "of the clients' time held back"], speed)
    table("Figure 11, what an operation takes", ["cluster", "processor, µs: hotrap", "RocksDB", "bytes written, hotrap's over RocksDB's",
                                                 "reads of the slow disk: hotrap", "RocksDB", "on the fast disk at the end: hotrap", "RocksDB"], costs,
          "Of the whole run.")
    table("Figure 11, loads", ["cluster", "until settled: hotrap", "RocksDB", "bytes written for each loaded one: hotrap", "RocksDB"], loads,
          f"“{NONE}” has a state that was loaded before.")
