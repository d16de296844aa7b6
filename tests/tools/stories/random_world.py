"""Random small histories of polite and rude producers, for rates and for properties."""

import random

from tests.tools.stories.histories import World, data, marker, record
from tests.tools.stories.history import History

BEGAN_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
BATCHES = 50


def random_history(seed: int) -> History:
    """One or two producers and one or two partitions; BATCHES batches in the logs, those of the state included.

    Most transactions are ended; sometimes a write comes late, after its marker, and hangs. Hours pass at the end.
    """
    source = random.Random(seed)
    world, now_ms = World(), BEGAN_MS
    places = [("orders", n) for n in range(source.choice((1, 2)))]
    world.logs = {place: [] for place in places}
    producers = range(source.choice((1, 2)))
    written = 0
    while written < BATCHES:
        producer, place = source.choice(producers), source.choice(places)
        name, listed = f"id-{producer}", [{"topic": place[0], "partition": place[1]}]
        start_ms = now_ms = now_ms + source.randrange(1, 5_000)
        world.record(record(name, "Ongoing", producer, now_ms, topic_partitions=listed, start_ms=start_ms))
        batches = source.choice((1, 2, 3))
        for _ in range(batches):
            now_ms += source.randrange(1, 1_000)
            world.logs[place].append(data(producer, now_ms))
        word = source.choice(("Commit", "Commit", "Abort"))
        world.record(record(name, f"Prepare{word}", producer, now_ms, topic_partitions=listed, start_ms=start_ms))
        world.logs[place].append(marker(producer, now_ms + 1, word.upper()))
        world.record(record(name, f"Complete{word}", producer, now_ms + 2, start_ms=start_ms))
        written += batches + 4
        if source.random() < 0.1:
            world.logs[place].append(data(producer, now_ms))
            written += 1
    for place, log in world.logs.items():
        now_ms += HOUR_MS
        listed = [{"topic": place[0], "partition": place[1]}]
        world.record(record("beat", "PrepareCommit", 99, now_ms, topic_partitions=listed))
        log.append(marker(99, now_ms))
        world.record(record("beat", "CompleteCommit", 99, now_ms + HOUR_MS))
    return world.history()
