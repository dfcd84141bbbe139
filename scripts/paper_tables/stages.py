"""Figure 15: a hot set that grows, moves and shrinks."""

from .markdown import megabytes, number, percent, table
from .measures import field
from .results import HOTRAP


def cell_of(results):
    return results.get("fig15", HOTRAP, "ro", "dynamic@300s")


def print_all(results):
    rows = [[stage["distribution"], percent(field(stage, "fd_hit_rate")), percent(field(stage, "last_tenth_fd_hit_rate")),
             number(field(stage, "seconds_to_steady"), 0, " s"), megabytes(field(stage, "hot_set_bytes")), megabytes(field(stage, "hot_set_limit_bytes"))]
            for stage in field(cell_of(results), "stages") or []]
    table("Figure 15, seven stages of 300 s", ["stage", "hit rate", "in its last tenth", "within three points of that after", "hot set at its end",
                                               "its limit"], rows)
