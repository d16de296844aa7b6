"""The parts, in the order in which they run: those that find most for a second come first."""

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

from tests.proof.by_kafka import kafka_log, kafka_requests
from tests.proof.faults.disks import may_mount, run_disks
from tests.proof.faults.kills import run_kills
from tests.proof.faults.pairs import run_pairs
from tests.proof.hostile.canary import VERBS, run_canary
from tests.proof.hostile.corpus import run_corpus
from tests.proof.hostile.fuzz import run_fuzz
from tests.proof.hostile.noise import run_noise
from tests.proof.hostile.safety import run_safety
from tests.proof.part import Figure, Found, Part, Report, Run, none_of
from tests.proof.world import alone, copies_proof, small, twins, ways
from tests.proof.world.both_engines import compared
from tests.tools.delta_jars import session_with_delta
from tests.tools.scene import Scene, tables_by_spark
from tests.tools.world.kinds import KINDS
from tests.tools.world.steps import story_of

PARTS: list[Part] = []
"""In the order in which they run."""


def part(name: str, *, size: int, sample: int) -> Callable[[Run], Run]:
    """Make a part of a function, whose first words say what it proves."""

    def made(run: Run) -> Run:
        words = " ".join((run.__doc__ or "").split()).removesuffix(".")
        PARTS.append(Part(name, words[0].lower() + words[1:], run, size, sample))
        return run

    return made


@part("corpus", size=100, sample=2)
def corpus(percent: int, _: int) -> Report:
    """No forged line, hostile id or cut dump raises a finding or loses a byte."""
    return run_corpus(percent)


@part("noise", size=100, sample=2)
def noise(percent: int, seed: int) -> Report:
    """Lines that others print change no row at any place of a text, or the bytes that are not read are named."""
    return run_noise(percent, seed)


@part("fuzz", size=100_000, sample=2_000)
def fuzz(lines: int, seed: int) -> Report:
    """No damaged line of a real dump crashes a reader or loses a byte."""
    return run_fuzz(lines, seed)


@part("properties", size=40, sample=0)
def properties(times: int, seed: int) -> Found:
    """Every property of the tests holds of many more random examples."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "junit.xml")
        words = ("-m", "hypothesis", "--times", str(times), "--hypothesis-seed", str(seed), "-n", "2", "-q")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words, f"--junitxml={file}"], capture_output=True, text=True, check=False
        )
        cases = list(ET.parse(file).iter("testcase")) if file.exists() else []
    broken = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    figures = (
        Figure("properties tried", len(cases), least=1),
        Figure("times the examples of `make test`", times),
        none_of("properties broken", len(broken)),
    )
    return Found(figures, [done.stdout[-3000:] + done.stderr[-1000:]] if done.returncode else ())


@part("mutants", size=300, sample=0)
def mutants(count: int, seed: int) -> Found:
    """Wherever a rule, a replay, a fit or a plan is changed, some test of it fails."""
    words = ("-m", "tests.proof.mutants", "--mutants", str(count), "--seed", str(seed))
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    if not done.stdout:
        return Found((), [done.stderr[-3000:]])
    said = json.loads(done.stdout.splitlines()[-1])
    figures = (
        Figure("places of the modules that decide", said["places"]),
        Figure("mutants tried", said["tried"], least=1),
        Figure("mutants killed", said["killed"], least=math.ceil(said["tried"] * 0.9)),
        none_of("living mutants without a reason in tests/proof/living_mutants.txt", len(said["unlisted"])),
    )
    return Found(figures, said["unlisted"])


@part("safety", size=2000, sample=100)
def safety(mutations: int, seed: int) -> Report:
    """No evidence taken away, mixed or handed over differently makes a verdict wrong."""
    return run_safety(mutations, seed)


@part("histories", size=20_000, sample=800)
def histories(count: int, seed: int) -> Found:
    """How many plans of random histories are wrong or destroy later, and how many true hangs are found."""
    report = ways.report_of(count, seed)
    figures = (
        Figure("random histories judged", report.histories),
        Figure("transactions planned", report.planned),
        none_of("histories with a wrong plan", report.wrong),
        none_of("plans that destroy when carried out later", report.destroyed),
        Figure("true hangs", report.hanging),
        Figure("true hangs found", report.found, least=1),
        *(figure for kind in KINDS for figure in _of_kind(kind, report)),
        none_of("open transactions wrongly said to be written while they were copied", report.misdated),
        *_of_fences(report),
    )
    return Found(figures, tuple(report.stories.values()))


def _of_fences(report: ways.Report) -> tuple[Figure, ...]:
    """Of planned transactions: what their fences end, and whether those that ask first repair as many of them."""
    fences, histories = report.fences, report.histories
    return (
        Figure("planned transactions of no id", fences.unknown, least=1),
        Figure("planned transactions whose id is fenced first", fences.ids, least=1),
        Figure("of these, under ids whose transactions never time out", fences.two_phase, least=histories // 4_000),
        Figure("fences typed as printed, at the copy and later", fences.typed, least=1),
        Figure("of these, refused by their look at what is in progress", fences.refused, least=1),
        Figure("of these, would have ended something in progress without it", fences.ended_unasked, least=1),
        none_of("fences that ended something in progress", fences.ended),
        Figure(
            "the same by --owner-gone, of what never times out and nobody will commit",
            fences.owner_gone,
            least=histories // 10_000,
        ),
        Figure("planned transactions repaired by fences that do not look", fences.repaired_unasked, least=1),
        Figure("planned transactions repaired as printed", fences.repaired, least=fences.repaired_unasked),
    )


def _of_kind(kind: str, report: ways.Report) -> tuple[Figure, Figure]:
    """True hangs of one kind of histories: at least 300 of 20,000 histories, so that the share that is found is one."""
    hanging, least = report.hanging_of[kind], 300 * report.histories // 20_000
    return Figure(f"true hangs where {kind}", hanging, least=least), _found_of(
        f"where {kind}", report.found_of[kind], hanging
    )


@part("twins", size=20_000, sample=250)
def pairs_of_twins(count: int, seed: int) -> Report:
    """No state of another cluster with the same ids makes a live transaction hang."""
    return twins.report_of(count, seed)


@part("copies", size=20_000, sample=300)
def copies(count: int, seed: int) -> Report:
    """The same of histories whose copies have manifests, or brokers' answers, with times, leaders, ends disturbed."""
    return copies_proof.report_of(count, seed)


@part("alone", size=20_000, sample=300)
def partitions_alone(count: int, seed: int) -> Report:
    """No plan of a partition that is audited alone is wrong."""
    return alone.report_of(count, seed)


@part("small", size=7, sample=6)
def small_histories(steps: int, _: int) -> Found:
    """The same of every history of so many steps in a small world."""
    report = small.report_of(*small.sizes(steps))
    figures = (
        Figure("small histories told", report.histories),
        Figure("judgements of those with open data", report.judged),
        none_of("wrong plans", report.wrong),
        Figure("true hangs", report.hanging),
        Figure("true hangs found", report.found, least=1),
        _found_of("with both assurances, which are true", report.found_said, report.hanging_said),
    )
    return Found(figures, ["; ".join(story_of(shortest)) for _, shortest in report.ways.values()])


def _found_of(which: str, found: int, hanging: int) -> Figure:
    """At least 99 of a hundred true hangs are found."""
    return Figure(f"true hangs found {which}, of {hanging:,}", found, least=math.ceil(hanging * 0.99))


@part("histories-on-spark", size=20_000, sample=300)
def histories_on_both(count: int, seed: int) -> Report:
    """Of random histories, thousands as one job, Spark's tasks find, plan and say what this process does."""
    return compared(ways.told_at_random(count, seed))


@part("small-on-spark", size=7, sample=4)
def small_histories_on_both(steps: int, _: int) -> Report:
    """The same of every history of so many steps in a small world."""
    return compared(small.told_of(*small.sizes(steps)))


part("kafka-log", size=2000, sample=60)(kafka_log)


part("requests", size=20000, sample=300)(kafka_requests)


@part("canary", size=7, sample=0)
def canary(verbs: int, seed: int) -> Report:
    """No key, payload or header is in anything that an audit leaves behind."""
    with tempfile.TemporaryDirectory() as folder:
        return run_canary(Path(folder), seed, VERBS[:verbs])


@part("kills", size=50, sample=5)
def kills(count: int, seed: int) -> Report:
    """After kill -9 at any moment, running again gives the tables of an undisturbed run."""
    return run_kills(count, seed, _scene())


@part("disks", size=20, sample=1)
def disks(count: int, seed: int) -> Found | Report:
    """A disk that fills up leaves earlier runs whole, and with room again the tables are the usual ones."""
    if not may_mount():
        return Found((Figure("disks tried (mounting is not allowed here)", 0),))
    return run_disks(count, seed, _scene())


@part("pairs", size=20, sample=1)
def pairs(count: int, seed: int) -> Report:
    """Two audits at once leave the tables of one after the other."""
    return run_pairs(count, seed, _scene())


@cache
def _scene() -> Scene:
    """One for all parts that a process runs: its audits take half a minute."""
    folder = Path(tempfile.mkdtemp())
    return Scene(session_with_delta("local[2]", "txn-analysis-proof"), folder, tables_by_spark)
