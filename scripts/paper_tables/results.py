"""A directory of results of the suite `paper-small`: its cells, and what the disks could do."""

import glob
import json
import os
import sys

HOTRAP, LEVELED, FLASH_CACHE, FJALL = "hotrap", "leveled", "flash-cache", "fjall"
ROCKSDB, FAST_ONLY, SLOW_ONLY = "rocksdb", "rocksdb-fast-only", "rocksdb-slow-only"
# As the tables have them, from left to right.
TITLES = {
    HOTRAP: "hotrap",
    LEVELED: "our level tiering",
    ROCKSDB: "RocksDB, level-tiered",
    SLOW_ONLY: "RocksDB, all on the slow disk",
    FAST_ONLY: "RocksDB, all on the fast disk",
    FLASH_CACHE: "flash cache",
    FJALL: "fjall, on the slow disk",
}
CLUSTERS = (11, 17, 19, 16, 53, 10, 29)


class Results:
    """Cells by name, `None` where one is not measured."""

    def __init__(self, directory):
        self.cells = {}
        for path in sorted(glob.glob(os.path.join(directory, "runs", "*.json"))):
            # NAME.REPEAT.json; the suite has one repeat.
            self.cells[os.path.basename(path).rsplit(".", 2)[0]] = read(path)
        if not self.cells:
            sys.exit(f"{directory}: no results of a suite; name the directory that --out named")
        # A workload of the same name and flags meant something else by another definition.
        definitions = {cell.get("workloads", 1) for cell in self.cells.values()}
        if len(definitions) > 1:
            sys.exit(f"{directory}: results of workloads by definitions {' and '.join(map(str, sorted(definitions)))}; put them apart: "
                     f"{', '.join(sorted(name for name, cell in self.cells.items() if cell.get('workloads', 1) < max(definitions)))}")
        self.probe = read(os.path.join(directory, "probe.json"))
        suite = read(os.path.join(directory, "suite.json"))
        # By name, of all cells of the suite.
        self.engines = {cell["id"]: cell["engine"] for cell in suite.get("cells", [])}
        for name, cell in self.cells.items():
            self.engines.setdefault(name, cell["engine"])

    def get(self, group, engine, workload, distribution):
        return self.cells.get(cell_name(group, engine, workload, distribution))

    def group(self, name):
        """Of `fig6-hotrap-ro-uniform` it is `fig6`."""
        return name.split(f"-{self.engines[name]}-")[0]

    def work(self, name):
        """Of `fig6-hotrap-ro-uniform` it is `ro-uniform`."""
        return name.split(f"-{self.engines[name]}-", 1)[-1]

    def names(self, engine, *groups):
        """The cells of an engine in some groups, measured or not."""
        return [name for name, of in self.engines.items() if of == engine and self.group(name) in groups]

    def missing(self):
        return [name for name in self.engines if name not in self.cells]


def cell_name(group, engine, workload, distribution):
    return f"{group}-{engine}-{workload}-{distribution}".replace(":", "-").replace("@", "-")


def read(path):
    """The JSON of a file, and nothing of one that is not there."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        sys.exit(f"{path}: not JSON ({error}); measure this cell anew")
