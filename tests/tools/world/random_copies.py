"""Random worlds with copies that have manifests: what is handed to the audit, and by whom."""

import random
from collections.abc import Sequence
from dataclasses import replace

from tests.tools.world.copying import Copier
from tests.tools.world.disturbances import BEHIND, KILLED, KINDS, SEVERAL, STATE_FIRST, UNNAMED, Clock
from tests.tools.world.evidence import Evidence, evidence_of
from tests.tools.world.random_worlds import EVENT_TIME_MS, Plot, random_plot
from tests.tools.world.steps import after
from tests.tools.world.teller import Teller

_LOADED = 0.2
_PAUSES_MS = (0, 1_000, 2_000, 60_000)


def told(seed: str, kind: str | None = None, *, asks: bool = True) -> tuple[Plot, Copier, Evidence]:
    """A random world, its copy, and what is handed to the audit; nobody gives a word but in the wrong order.

    Args:
        seed: of everything.
        kind: what disturbs the copy; None for anything.
        asks: most collectors ask for producers.
    """
    plot = random_plot(f"{seed}, copied", is_faulty=False)
    is_loaded = random.Random(f"{seed}, its load").random() < _LOADED
    if is_loaded:
        plot = replace(plot, event_time_ms=EVENT_TIME_MS)
    source = random.Random(f"{seed}, the copier")
    world = plot.start()
    for step in plot.steps:
        world = world if step.kind.startswith("copy") else after(world, step) or world
    kind = kind or source.choice(KINDS)
    is_collector = kind == BEHIND or source.random() < 0.4
    number = 2 if kind == SEVERAL else 1
    most_ms = 4 * 3_600_000 if is_collector else 400 if plot.clocks_ms else 0
    clocks = [Clock(source.randint(-most_ms, most_ms), world.now_ms) for _ in range(number)]
    is_calm = source.random() < 0.5
    copier = Copier(world, Teller(plot.names, source, is_calm=is_calm), kind, is_collector, clocks)
    copier.is_loaded = is_loaded
    asking = random.Random(f"{seed}, what it asks")
    copier.asks_producers = asks and is_collector and asking.random() < 0.7
    copier.is_whole = asking.random() < 0.3
    copier.has_begun()
    _copy(copier)
    return plot, copier, _evidence(plot, copier)


def _copy(copier: Copier) -> None:
    logs = [("log", n) for n in range(len(copier.world.logs)) if not copier.asks_producers or copier.is_stuck(n)]
    if not logs or copier.is_whole:
        copier.is_whole, logs = True, [("log", n) for n in range(len(copier.world.logs))]
    states = [("state", n) for n in range(len(copier.world.states))]
    order: Sequence[tuple[str, int]] = [*states, *logs] if copier.kind == STATE_FIRST else [*logs, *states]
    if copier.kind == UNNAMED:  # the last log, which nobody names, is copied when all else has been
        order = [*logs[:-1], *states, logs[-1]]
    for place, (what, number) in enumerate(order):
        if place and what != order[place - 1][0]:
            copier.happens()
            copier.waits(copier.source.choice(_PAUSES_MS))
        if place:  # a clock that is wrong from the first byte on is a broker's that is beyond what clocks may differ
            copier.sets_clock()
        if what == "log":
            copier.copies_log(number)
        else:
            copier.copies_state(number)
    if copier.kind != KILLED:
        copier.asked_again()


def _evidence(plot: Plot, copier: Copier) -> Evidence:
    world = copier.world
    copied = replace(
        world,
        logs=tuple(replace(log, copy=copier.logs.get(n, ())) for n, log in enumerate(world.logs)),
        states=tuple(replace(state, copy=copier.states[n]) for n, state in enumerate(world.states)),
    )
    copier.world = copied
    is_steady = copier.kind == STATE_FIRST
    given = evidence_of(copied, says_last=is_steady and copier.source.random() < 0.7, draws_together=False)
    manifests = copier.manifests()
    if copier.kind == UNNAMED:
        manifests = (manifests[0]._replace(files=manifests[0].files[:-1]),)
    return replace(
        given,
        clocks_ms=plot.clocks_ms,
        cluster_id=plot.cluster_id,
        turn=plot.turn,
        no_records_lost=copier.source.random() < 0.7 and not world.lost,
        as_of_ms=world.now_ms if copier.source.random() < 0.6 else None,
        is_shallow=() if copier.asks_producers else plot.is_shallow,
        manifests=manifests,
        epoch_starts=tuple(copier.epoch_starts.items()),
        absent_logs=frozenset(range(len(world.logs))) - copier.logs.keys(),
        described=tuple(copier.described.items()),
    )
