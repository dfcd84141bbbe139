"""Figures 12 to 14: what processor time and bytes are spent on."""

from .markdown import number, table
from .measures import field
from .results import FAST_ONLY, FLASH_CACHE, HOTRAP, ROCKSDB, TITLES
from .throughput import FIGURE_7

ORDER = ("read", "write", "flush", "compaction", "promotion", "ralt", "background", "unattributed", "other")
DISKS = ("fast", "slow")


def in_order(names):
    return sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def moved(io):
    return io["read_bytes"] + io["write_bytes"]


def by_activity(results, title, note, spent, show):
    """A column for each activity that took anything, and their sum; `spent` gives a cell's by activity, or `None`."""
    rows = []
    for group, workload, distribution in FIGURE_7:
        for engine in (HOTRAP, FLASH_CACHE, ROCKSDB, FAST_ONLY):
            cell = results.get(group, engine, workload, distribution)
            found, ops = cell and spent(cell), field(cell, "ops")
            if found and any(found.values()) and ops:
                rows.append((f"{workload} {distribution}", TITLES[engine], {name: value / ops for name, value in found.items()}))
    names = in_order({name for *_, found in rows for name, value in found.items() if value > 0})
    table(title, ["run", "engine", *names, "all"],
          [[run, engine, *(show(found.get(name)) for name in names), show(sum(found.values()))] for run, engine, found in rows], note, labels=2)


def figures_12_and_13(results):
    by_activity(results, "Figure 12, processor time of an operation by activity, in µs", "Records of 200 bytes.",
                lambda cell: field(cell, "cpu_by_activity"), lambda seconds: number(seconds, 2, scale=1e6))

    def bytes_on(disk):
        def spent(cell):
            activities = field(cell, "io_by_activity", disk)
            return activities and {name: moved(io) for name, io in activities.items()}
        return spent

    for disk in DISKS:
        by_activity(results, f"Figure 13, bytes read and written on the {disk} disk for an operation, by activity", "Records of 200 bytes.",
                    bytes_on(disk), number)


def a_second(cell, prefix, tenth=False):
    """Bytes read and written a second, by disk and activity, of a series: all of it or its last tenth."""
    ends = [entry["second"] for entry in field(cell, prefix + "series") or []]
    io = field(cell, prefix + "activity_series", "io")
    if not ends or io is None:
        return None
    first = sum(end <= 0.9 * ends[-1] for end in ends) if tenth else 0
    seconds = ends[-1] - (ends[first - 1] if first else 0.0)
    return {(disk, activity): [sum(kinds.get(kind, [])[first:]) / seconds for kind in ("read_bytes", "write_bytes")]
            for disk, activities in io.items() for activity, kinds in activities.items()}


def of_the_run(cell):
    """The same of the whole run, by its totals."""
    disks, seconds = field(cell, "io_by_activity"), field(cell, "seconds")
    if disks is None or not seconds:
        return None
    return {(disk, activity): [io[kind] / seconds for kind in ("read_bytes", "write_bytes")]
            for disk, activities in disks.items() for activity, io in activities.items()}


def figure_14(results):
    rows = []
    for engine in (HOTRAP, ROCKSDB, FAST_ONLY):
        cell = results.get("fig6", engine, "rw", "hotspot-5")
        parts = a_second(cell, "warm_up_"), of_the_run(cell), a_second(cell, "", tenth=True)

        def texts(disk, names):
            # An activity that did nothing has no series.
            return [number(None if part is None else sum(part.get((disk, name), (0, 0))[kind] for name in names), 1, scale=1e-6)
                    for part in parts for kind in (0, 1)]

        for disk in DISKS:
            names = in_order({name for part in parts if part for (of, name), moves in part.items() if of == disk and any(moves)})
            if len(names) > 1:
                rows.append([TITLES[engine], disk, "all", *texts(disk, names)])
            rows += [[TITLES[engine], disk, name, *texts(disk, [name])] for name in names]
    table("Figure 14, MB a second by disk and activity before and during rw hotspot-5",
          ["engine", "disk", "activity", "warm-up: read", "written", "run: read", "written", "its last tenth: read", "written"], rows, labels=3)


def print_all(results):
    figures_12_and_13(results)
    figure_14(results)
