"""Transactional ids in the shapes in which frameworks name them: each stands for an id of one letter.

Each lies in the partition of `__transaction_state` in which its letter lies, of 1, 2, 50 or 100.
"""

from functools import cache
from itertools import count

from txn_analysis.kafka.names import java_hash, state_partition

FLINK, STREAMS, CONNECT, PLAIN = "Flink", "Kafka Streams", "Kafka Connect", "chosen by the application"
SHAPES = (FLINK, STREAMS, CONNECT, PLAIN)
_FORMS = {
    FLINK: "{letter}-0-{number}",
    STREAMS: "{letter}-00000000-0000-4000-8000-000000000001-{number}",
    CONNECT: "connect-cluster-{letter}-{number}",
    PLAIN: "{letter}",
}
_IN_FRONT = "connect-cluster-"
_MOST_STATES = 100


def shape_of(letter: str, turn: int) -> str:
    """Of which shape an id is; at another turn it is another."""
    return SHAPES[(ord(letter) + turn) % len(SHAPES)]


@cache
def id_of(letter: str, turn: int | None) -> str:
    """What an id is called where `turn` says who names it; the letter itself without one."""
    form = "{letter}" if turn is None else _FORMS[shape_of(letter, turn)]
    names = (form.format(letter=letter, number=number) for number in count(1))
    return next(name for name in names if state_partition(java_hash(name), _MOST_STATES) == ord(letter) % _MOST_STATES)


def letter_of(transactional_id: str) -> str:
    """For which letter an id stands."""
    return transactional_id.removeprefix(_IN_FRONT)[0]
