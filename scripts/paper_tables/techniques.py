"""Tables 3 to 5: single techniques turned off."""

from .aim import above, at_least, verdict
from .markdown import megabytes, number, percent, table
from .measures import added, field, final_hit_rate, over
from .results import HOTRAP

RETENTION = "retention", "table3-no-retention", "rw", "hotspot-5"
HOTNESS_CHECK = "hotness check", "table4-no-hotness-check", "ro", "uniform"
BY_COMPACTION = "promotion by compaction", "table5-no-by-compaction", "rw", "hotspot-5"
PROMOTED = "promoted_flush_bytes", "promoted_compaction_bytes"
COMPACTED = "compaction_read_bytes", "compaction_write_bytes"


def pair(results, technique):
    """The cell with all techniques, and the one without this."""
    _, off, workload, distribution = technique
    return [results.get(group, HOTRAP, workload, distribution) for group in ("fig6", off)]


def parts_of(results):
    """What is hot comes to the fast disk in the warm-up: its bytes count, too, where all of these cells have recorded it."""
    cells = [cell for technique in (RETENTION, HOTNESS_CHECK, BY_COMPACTION) for cell in pair(results, technique) if cell]
    return ("warm_up_", "") if cells and all(field(cell, "warm_up_ops") is not None for cell in cells) else ("",)


def bytes_an_operation(cell, parts, fields):
    return over(added(*(field(cell, part + name) for part in parts for name in fields)), added(*(field(cell, part + "ops") for part in parts)))


def points_lost(results):
    """What the hit rate of the last tenth is less without retention."""
    rates = [final_hit_rate(cell) for cell in pair(results, RETENTION)]
    return (None if None in rates else 100 * (rates[0] - rates[1])), rates


def times_without(pair_of_bytes):
    """How many times as many bytes there are without a technique."""
    with_it, without = pair_of_bytes
    if with_it == 0 and without:
        return float("inf")
    return over(without, with_it)


def promoted_after_warm_up(results):
    """Bytes promoted a read, of the run alone: by then the hot set has been filled once."""
    return [bytes_an_operation(cell, ("",), PROMOTED) for cell in pair(results, HOTNESS_CHECK)]


def compacted(results):
    return [bytes_an_operation(cell, parts_of(results), COMPACTED) for cell in pair(results, BY_COMPACTION)]


AIMS = {
    RETENTION: at_least(15.0, " points"),
    HOTNESS_CHECK: at_least(50.0, " ×"),
    BY_COMPACTION: above(1.0, " ×"),
}


def print_all(results):
    parts = parts_of(results)

    def row(technique, what, show, of, aim="", reached=""):
        name, _, workload, distribution = technique
        return [f"{name}, {workload} {distribution}: {what}", *(show(of(cell)) for cell in pair(results, technique)), aim, reached]

    def an_operation(technique, what, fields, over_parts=parts, aim="", reached=""):
        return row(technique, what, lambda value: number(value, 1), lambda cell: bytes_an_operation(cell, over_parts, fields), aim, reached)

    def in_all(technique, what, name):
        return row(technique, what, megabytes, lambda cell: added(*(field(cell, part + name) for part in parts)))

    def full(cell):
        begin = field(cell, "warm_up_series", -1)
        return over(field(begin, "hot_set_bytes"), field(begin, "hot_set_limit_bytes"))

    lost, _ = points_lost(results)
    promoted, compactions = times_without(promoted_after_warm_up(results)), times_without(compacted(results))
    rows = [
        row(RETENTION, "hit rate in the last tenth", percent, final_hit_rate, "15 points less", verdict(lost, AIMS[RETENTION])),
        in_all(RETENTION, "promoted by flush", PROMOTED[0]),
        in_all(RETENTION, "promoted by compaction", PROMOTED[1]),
        an_operation(RETENTION, "bytes promoted an operation", PROMOTED),
        an_operation(RETENTION, "bytes retained an operation", ("retained_bytes",)),
        an_operation(RETENTION, "bytes compacted an operation", COMPACTED),
        row(HOTNESS_CHECK, "hit rate in the last tenth", percent, final_hit_rate),
        row(HOTNESS_CHECK, "hot set as the run begins, of its limit", percent, full),
        an_operation(HOTNESS_CHECK, "bytes promoted a read", PROMOTED),
        an_operation(HOTNESS_CHECK, "bytes promoted a read, in the run alone", PROMOTED, ("",), "50 times as many",
                     verdict(promoted, AIMS[HOTNESS_CHECK])),
        an_operation(HOTNESS_CHECK, "bytes compacted a read", COMPACTED),
        row(BY_COMPACTION, "hit rate in the last tenth", percent, final_hit_rate),
        in_all(BY_COMPACTION, "promoted by flush", PROMOTED[0]),
        in_all(BY_COMPACTION, "promoted by compaction", PROMOTED[1]),
        an_operation(BY_COMPACTION, "bytes compacted an operation", COMPACTED, parts, "more", verdict(compactions, AIMS[BY_COMPACTION])),
    ]
    of = "of warm-up and run" if len(parts) > 1 else "of the run"
    table("Tables 3 to 5, single techniques off", ["", "with", "without", "aim", ""], rows, f"Bytes are {of} where nothing else is said.")
