"""Random stories of a simulated cluster, for hypothesis and for long runs by seed."""

import random
from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.oracle.cluster import TWO_PHASE_TIMEOUT_MS, Cluster
from tests.oracle.copies import Copy
from tests.oracle.model import TopicPartition
from tests.oracle.recipes import HOUR_MS, INVENTED_PRODUCER_ID, LONG_AGO_MS, ORDERS, PAYMENTS, Client, new_cluster

NAMES = ("billing", "evil\n<b>", 'settlement,eu=west "q"', "\U0001f600-sink")


@dataclass(frozen=True)
class Action:
    """One random event; its numbers choose among what there is."""

    kind: str
    who: int = 0
    where: int = 0
    number: int = 0


CLOCKS_MS = (0, 0, 0, LONG_AGO_MS, LONG_AGO_MS, HOUR_MS)
SLEEPS_MS = (1, 2000, 70_000, 25 * 60_000)
TIMEOUTS_MS = (60_000, 60_000, 900_000, TWO_PHASE_TIMEOUT_MS)
KINDS = (
    *("transact",) * 3,
    *("commit", "abort", "sleep", "write", "init", "write_old_epoch", "write_unknown", "expire"),
    *("disconnect", "reconnect", "stop", "start", "move", "administrator", "roll", "delete"),
)


@dataclass
class Stage:
    """Plays actions on a cluster, with one client per name."""

    cluster: Cluster
    clients: dict[str, Client] = field(default_factory=dict)

    def act(self, action: Action) -> None:
        """Let one event happen; one that is not possible now does nothing."""
        partitions = sorted(self.cluster.logs)
        name, where = NAMES[action.who % len(NAMES)], partitions[action.where % len(partitions)]
        if action.kind in {"transact", "write", "write_old_epoch", "init", "commit", "abort"}:
            self.act_as_client(action, name, where)
        elif action.kind == "write_unknown":
            self.cluster.produce(
                where, INVENTED_PRODUCER_ID + action.who, 3, client_clock_ms=CLOCKS_MS[action.number % 6]
            )
        elif action.kind in {"administrator", "roll", "delete", "disconnect", "reconnect"}:
            self.act_on_partition(action, where)
        else:
            self.act_on_coordinator(action, name)

    def act_as_client(self, action: Action, name: str, where: TopicPartition) -> None:
        """What one application instance does."""
        if name not in self.clients or action.kind == "init":
            self.clients[name] = Client(self.cluster, name).init(timeout_ms=TIMEOUTS_MS[action.number % 4])
        client, clock_ms = self.clients[name], CLOCKS_MS[action.number % 6]
        if client.producer_id < 0:
            del self.clients[name]
        elif action.kind == "transact" and self.is_current(client):
            client.transact(where, clock_ms=clock_ms)
        elif action.kind == "write":
            client.write(where, clock_ms=clock_ms)
        elif action.kind == "write_old_epoch" and client.epoch > 0:
            Client(self.cluster, name, client.producer_id, client.epoch - 1).write(where, clock_ms=clock_ms)
        elif action.kind in {"commit", "abort"} and self.is_current(client):
            client.end(action.kind.capitalize())

    def is_current(self, client: Client) -> bool:
        """Whether the coordinator still accepts that instance: not fenced, not timed out, not expired."""
        current = self.cluster.ids.get(client.name)
        return current is not None and (current.value.producer_id, current.value.producer_epoch) == (
            client.producer_id,
            client.epoch,
        )

    def act_on_partition(self, action: Action, where: TopicPartition) -> None:
        """What happens to one data partition."""
        log = self.cluster.logs[where]
        if action.kind == "roll":
            self.cluster.roll(where)
        elif action.kind == "disconnect":
            self.cluster.unreachable.add(where)
        elif action.kind == "reconnect":
            self.cluster.unreachable.discard(where)
            self.cluster.write_markers()
        elif action.kind == "delete" and log.rolls:
            self.cluster.delete_records(where, log.rolls[action.number % len(log.rolls)][1])
        elif action.kind == "administrator" and (opened := sorted(log.state.open_starts())):
            producer = opened[action.number % len(opened)]
            if not self.cluster.truth(where, producer, log.state.open_starts()[producer]).is_abort_wrong:
                self.cluster.administrator_aborts(where, producer)

    def act_on_coordinator(self, action: Action, name: str) -> None:
        """What happens to coordinators and clocks."""
        partition = action.where % len(self.cluster.states)
        if action.kind == "sleep":
            self.cluster.sleep(SLEEPS_MS[action.number % len(SLEEPS_MS)])
        elif action.kind == "expire":
            self.cluster.expire(name)
        elif action.kind == "stop":
            self.cluster.stopped_coordinators.add(partition)
        elif action.kind == "start":
            self.cluster.stopped_coordinators.discard(partition)
            self.cluster.write_markers()
        elif action.kind == "move":
            self.cluster.move_coordinator(partition)


def play(actions: list[Action], cluster: Cluster) -> Cluster:
    """The cluster after the actions."""
    stage = Stage(cluster)
    for action in actions:
        stage.act(action)
    return cluster


def random_actions(seed: int, count: int) -> list[Action]:
    """A story that depends on its seed only, for long runs outside of hypothesis."""
    source = random.Random(seed)
    return [Action(source.choice(KINDS), *(source.randrange(12) for _ in range(3))) for _ in range(count)]


def actions(max_size: int = 30) -> st.SearchStrategy[list[Action]]:
    """Random stories that shrink to the events that matter."""
    numbers = st.integers(0, 11)
    return st.lists(st.builds(Action, st.sampled_from(KINDS), numbers, numbers, numbers), max_size=max_size)


@st.composite
def clusters(draw: st.DrawFn, *, max_actions: int = 30, max_skew_ms: int = 0) -> Cluster:
    """A cluster with a past; clocks of its brokers differ by no more than `max_skew_ms`."""
    skews = st.dictionaries(st.sampled_from([ORDERS, PAYMENTS, ("clicks", 0)]), st.integers(0, max_skew_ms), max_size=3)
    cluster = new_cluster(
        transaction_version=draw(st.sampled_from((0, 0, 2))), skew_ms=draw(skews) if max_skew_ms else {}
    )
    return play(draw(actions(max_actions)), cluster)


@st.composite
def copies(draw: st.DrawFn, cluster: Cluster) -> Copy:
    """Any way to copy the cluster's files: at once, logs first, state first, each partition at a moment of its own."""
    how = draw(st.sampled_from(("present", "logs_first", "state_first", "scattered")))
    moments = st.integers(0, cluster.moment)
    if how == "present":
        return cluster.copy()
    if how == "scattered":
        names = [*cluster.logs, *((log.topic, log.partition) for log in cluster.states)]
        return cluster.copy({name: draw(moments) for name in names})
    earlier = draw(moments)
    pair = (earlier, cluster.moment) if how == "logs_first" else (cluster.moment, earlier)
    return cluster.copy_in_order(logs_at=pair[0], state_at=pair[1])
