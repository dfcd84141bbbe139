"""What placement by hotness costs: RALT's processor time, bytes and memory, and admissions refused."""

from .markdown import NONE, number, percent, table
from .measures import data_bytes, field, over
from .results import HOTRAP

GROUPS = ("fig6", "fig7", "fig11", "fig15", "fig16")


def processor(cell):
    return field(cell, "ralt_cpu_share")


def bytes_moved(cell):
    return field(cell, "ralt_io_share")


def memory(cell):
    return over(field(cell, "ralt_memory_bytes"), data_bytes(cell))


def refused(cell):
    attempts = field(cell, "admission_attempts")
    # Where nothing asked nothing was refused.
    return 0.0 if attempts == 0 else over(field(cell, "admission_refused"), attempts)


class Most:
    """The greatest of a figure over some cells: its value, where it is, and of how many of the cells it is known."""

    def __init__(self, results, names, figure):
        known = [(value, name) for name in names if (value := figure(results.cells.get(name))) is not None]
        self.value, name = max(known, default=(None, None))
        self.where = name and results.work(name)
        self.known, self.all = len(known), len(names)

    def text(self, decimals):
        return percent(self.value, decimals) + (f" ({self.where})" if self.value is not None and self.all > 1 else "")


def of_workload(results, workload):
    """Cells with records of all lengths."""
    return [name for name in results.names(HOTRAP, *GROUPS) if results.work(name).startswith(f"{workload}-")]


def kinds(results):
    """Cells of one kind, each in one of them."""
    def under(group, beginning):
        return [name for name in results.names(HOTRAP, group) if results.work(name).startswith(beginning)]

    def behind(end):
        return [name for name in results.names(HOTRAP, "fig6") if results.work(name).endswith(end)]

    yield "ro hotspot-5 and -1", under("fig6", "ro-hotspot") + under("fig16", "ro-hotspot")
    yield "rw hotspot-5", under("fig6", "rw-hotspot")
    yield "wh hotspot-5", under("fig6", "wh-hotspot")
    yield "uh hotspot-5", under("fig6", "uh-hotspot")
    yield "zipfian:0.99", behind("zipfian-0.99")
    yield "uniform", behind("uniform")
    yield "stages", results.names(HOTRAP, "fig15")
    yield "clusters", results.names(HOTRAP, "fig11")
    yield "records of 200 bytes", results.names(HOTRAP, "fig7")


def print_all(results):
    rows = []
    for kind, names in kinds(results):
        most = [Most(results, names, figure) for figure in (processor, bytes_moved, memory)]
        rows.append([kind, *(each.text(decimals) for each, decimals in zip(most, (1, 1, 3))), f"{most[0].known} of {most[0].all}"])
    table("RALT, at most", ["runs", "of the processor time", "of the bytes moved", "memory, of the data", "measured"], rows,
          "In brackets the cell that has it. The whole run of each; those with a technique off are not among them.")
    rows = []
    for workload in ("ro", "rw", "wh", "uh", "cluster"):
        names = of_workload(results, workload)
        most = Most(results, names, refused)
        cells = [results.cells[name] for name in names if name in results.cells]
        totals = [sum(field(cell, name) or 0 for cell in cells) for name in ("admission_refused", "admission_attempts")]
        kind = "clusters" if workload == "cluster" else workload
        in_all = f"{number(totals[0])} of {number(totals[1])}" if most.known else NONE
        rows.append([kind, most.text(2), in_all, f"{most.known} of {most.all}"])
    table("Admissions refused", ["runs", "at most", "in all", "measured"], rows)
