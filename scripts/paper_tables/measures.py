"""What the tables say of a cell. Each is `None` where the cell is not measured, or its engine does not tell."""

import re

from .markdown import last_and_whole, number, percent

# From this share of its limit on the slow disk is what a run waits for: as in reports, `pages/sections/latency.rs` of thermocline-bench.
BOUND = 0.85


def field(cell, *path):
    """What lies at the end of `path`, a key or an index for each step."""
    for step in path:
        try:
            cell = cell[step]
        except (KeyError, IndexError, TypeError):
            return None
    return cell


def over(part, whole):
    return None if part is None or not whole else part / whole


def added(*values):
    return None if None in values else sum(values)


def of_reads(latencies):
    """Latencies of reads, or of the first kind of operation where nothing is read."""
    latencies = latencies or []
    return next((each for each in latencies if each["operation"] == "read"), latencies[0] if latencies else None)


def operations(cell):
    """Operations a second."""
    return last_and_whole(number, field(cell, "last_tenth_ops_s"), field(cell, "ops_s"))


def ratios(cell, other):
    """Operations a second over those of another, in the last tenth and in the whole run."""
    return [over(field(cell, name), field(other, name)) for name in ("last_tenth_ops_s", "ops_s")]


def ratio(cell, other):
    return last_and_whole(lambda value: number(value, 2), *ratios(cell, other))


def final_hit_rate(cell):
    """The share of the last tenth's reads that was answered without the slow disk."""
    return field(cell, "last_tenth_fd_hit_rate")


def hits(cell):
    return percent(final_hit_rate(cell))


def slow_reads(cell):
    """Reads of the slow disk for an operation: compactions' too, where there are any."""
    return over(field(cell, "sd_read_ops"), field(cell, "ops"))


def write_share(cell):
    """The share of the operations that write."""
    counts = {each["operation"]: each["count"] for each in field(cell, "latencies") or []}
    return over(sum(counts.values()) - counts.get("read", 0) - counts.get("scan", 0), sum(counts.values()))


def processor_share(cell):
    """Of all cores."""
    return over(over(field(cell, "cpu_seconds"), field(cell, "seconds")), field(cell, "host", "cores"))


def held_back(cell):
    """The share of the clients' time for which writers were held back."""
    return over(over(field(cell, "stall_seconds"), field(cell, "seconds")), field(cell, "threads"))


def loading(cell):
    """Seconds until what was loaded had settled."""
    return added(field(cell, "load_seconds"), field(cell, "load_settle_seconds"))


def data_bytes(cell):
    """Keys and values that were loaded."""
    records, record_bytes = field(cell, "records"), field(cell, "record_bytes")
    return None if records is None or record_bytes is None else records * record_bytes


def load_of_slow_disk(cell, probe):
    """The share of the slow disk's limit that a run used, of operations or of bytes read, whichever is more. The limit is the
    emulated one, or what the command expects of a real disk, or what the probe found."""
    disk = field(cell, "slow_probe") or field(probe, "slow")
    command = field(cell, "command") or ""

    def expected(flag):
        found = re.search(rf"{flag} (\d+)(?: |$)", command)
        return int(found[1]) if found else None

    limits = (
        ("sd_read_ops", field(cell, "settings", "slow_device", "iops") or expected("--expect-slow-iops")
         or field(disk, "random_read_16k", "iops")),
        ("sd_read_bytes", field(cell, "settings", "slow_device", "bandwidth") or expected("--expect-slow-bandwidth")
         or field(disk, "sequential_read_bytes_s")),
    )
    shares = [over(over(field(cell, used), field(cell, "seconds")), limit) for used, limit in limits]
    return max((share for share in shares if share is not None), default=None)


def waits_for_slow_disk(cell, probe):
    return (load_of_slow_disk(cell, probe) or 0.0) >= BOUND
