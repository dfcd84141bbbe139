"""What was aimed at, and what was measured."""

from . import hotness, stages, techniques
from .aim import at_least, at_most, below, verdict
from .markdown import NONE, last_and_whole, number, percent, table
from .measures import field, final_hit_rate, ratios
from .results import CLUSTERS, FAST_ONLY, HOTRAP, ROCKSDB

RIVALS = {ROCKSDB: "× level-tiered", FAST_ONLY: "× all on the fast disk"}
# Group, workload and distribution; by rival, the ratio aimed at, or `None` where it is only told; the hit rate in percent.
SPEED = [
    ("fig6", "ro", "hotspot-5", {ROCKSDB: 10.0, FAST_ONLY: 1.05}, 94.8),
    ("fig6", "rw", "hotspot-5", {ROCKSDB: 7.5, FAST_ONLY: 1.0}, 94.5),
    ("fig6", "ro", "zipfian:0.99", {ROCKSDB: 2.7, FAST_ONLY: None}, 80.0),
    ("fig6", "ro", "uniform", {ROCKSDB: 1.0}, None),
    ("fig6", "uh", "hotspot-5", {ROCKSDB: 1.1, FAST_ONLY: None}, None),
    ("fig7", "ro", "hotspot-5", {ROCKSDB: None, FAST_ONLY: None}, None),
    ("fig16", "ro", "hotspot-1", {ROCKSDB: None}, None),
]
LENGTHS = {"fig7": ", 200 bytes", "fig16": ", slow disk of 400 operations"}


def ratio_row(run, what, pair, bound, more=""):
    last, whole = pair
    if bound is None:
        return [run, what, "", last_and_whole(lambda value: number(value, 2), last, whole) + more, ""]
    aim = at_least(bound)
    # Where it is close a third decimal tells more.
    decimals = 3 if last is not None and abs(last / bound - 1) < 0.01 else 2
    measured = NONE if last is None else f"{aim.show(last, decimals)} ({number(whole, decimals)})"
    return [run, what, aim.text, measured + more, verdict(last, aim)]


def of_speed(results):
    for group, workload, distribution, rivals, hits in SPEED:
        run = f"{workload} {distribution}{LENGTHS.get(group, '')}"
        ours = results.get(group, HOTRAP, workload, distribution)
        for rival, bound in rivals.items():
            yield ratio_row(run, RIVALS[rival], ratios(ours, results.get(group, rival, workload, distribution)), bound)
        if hits is not None:
            aim, rate = at_least(hits, " %"), final_hit_rate(ours)
            value = None if rate is None else 100 * rate
            yield [run, "hit rate", aim.text, aim.show(value, 1) + (f" ({percent(field(ours, 'fd_hit_rate'))})" if ours else ""), verdict(value, aim)]


def of_clusters(results):
    known = []
    for cluster in CLUSTERS:
        pair = ratios(*(results.get("fig11", engine, "cluster", cluster) for engine in (HOTRAP, ROCKSDB)))
        if None not in pair:
            known.append((*pair, cluster))
    for what, choose in (("least", min), ("greatest", max)):
        *pair, cluster = choose(known, default=(None, None, None))
        more = "" if cluster is None else f", cluster {cluster}" + (f", of {len(known)}" if len(known) < len(CLUSTERS) else "")
        yield ratio_row("clusters", f"× level-tiered, {what}", pair, None, more)


def most_row(run, what, most, aim, decimals):
    value = None if most.value is None else 100 * most.value
    is_whole = most.known == most.all
    measured = NONE if value is None else f"{aim.show(value, decimals)} at most, {most.where}{'' if is_whole else f', {most.known} of {most.all} runs'}"
    return [run, what, aim.text, measured, verdict(value, aim, is_whole)]


def of_hotness(results):
    for run, groups in (("RALT", ("fig6", "fig15", "fig16")), ("RALT, clusters", ("fig11",)), ("RALT, 200 bytes", ("fig7",))):
        names = results.names(HOTRAP, *groups)
        for what, figure, bound, decimals in (("processor time", hotness.processor, 12.0, 1), ("bytes moved", hotness.bytes_moved, 15.0, 1),
                                              ("memory, of the data", hotness.memory, 0.09, 3)):
            yield most_row(run, what, hotness.Most(results, names, figure), at_most(bound, " %"), decimals)
    for workload, bound in (("ro", 1.0), ("rw", 3.0)):
        most = hotness.Most(results, hotness.of_workload(results, workload), hotness.refused)
        yield most_row("admissions", f"refused, {workload}", most, below(bound, " %"), 2)


def of_techniques(results):
    def row(technique, run, what, value, decimals, pair):
        aim = techniques.AIMS[technique]
        return [run, what, aim.text, NONE if value is None else f"{aim.show(value, decimals)}: {pair[0]} with, {pair[1]} without", verdict(value, aim)]

    lost, rates = techniques.points_lost(results)
    yield row(techniques.RETENTION, "no retention, rw hotspot-5", "hit rate less", lost, 1, [percent(rate) for rate in rates])
    promoted = techniques.promoted_after_warm_up(results)
    yield row(techniques.HOTNESS_CHECK, "no hotness check, ro uniform", "bytes promoted a read", techniques.times_without(promoted), 0,
              [number(each, 1, " B") for each in promoted])
    compacted = techniques.compacted(results)
    yield row(techniques.BY_COMPACTION, "no promotion by compaction, rw hotspot-5", "bytes compacted an operation", techniques.times_without(compacted), 2,
              [number(each, 0, " B") for each in compacted])


def of_stages(results):
    aim = at_most(300.0, " s")
    stages_of_run = field(stages.cell_of(results), "stages") or []
    # Who never stays near the end's hit rate takes for ever.
    times = [(float("inf") if stage.get("seconds_to_steady") is None else stage["seconds_to_steady"], stage["distribution"]) for stage in stages_of_run]
    longest, where = max(times, default=(None, None))
    measured = NONE if longest is None else f"{aim.show(longest, 0)} at most, {where}"
    return [["seven stages", "within 3 points of the stage's last tenth after", aim.text, measured, verdict(longest, aim)]]


def print_all(results):
    rows = [row for of in (of_speed, of_clusters, of_hotness, of_techniques, of_stages) for row in of(results)]
    table("Aims", ["run", "what", "aim", "measured", ""], rows, "Of the last tenth (whole run in brackets), RALT's and admissions' of whole runs.", labels=2)
