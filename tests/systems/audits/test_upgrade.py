"""`transaction.version` is raised from 1 to 2 while clients write: what the broker says is what the files say."""

import json
from functools import cache

from tests.systems.e2e.upgrade import PLACES
from tests.tools.captures import PARAMETERS
from tests.tools.log_dirs.at_hand import answer_for, inputs_of
from tests.tools.repository import CASES
from tests.tools.stories.answer import Answer
from txn_analysis.settings import Settings

CAPTURE = CASES / "kafka-4.4-upgrade/capture-1"
NOBODY = -1


@cache
def audited() -> Answer:
    return answer_for(CAPTURE / "log-dirs", Settings.model_validate(PARAMETERS))


def test_the_producers_of_every_partition_are_those_that_the_broker_described() -> None:
    told = json.loads((CAPTURE / "oracle/producers.json").read_text())
    ours = {
        f"{row['topic']}-{row['partition']}": {
            (p["producer_id"], p["producer_epoch"], p["coordinator_epoch"], p["txn_start_offset"])
            for p in row["producers"]
        }
        for row in audited().health
    }
    assert len(told) == len(PLACES)
    for place, producers in told.items():
        answered = {
            (producer_id, epoch, _known(coordinator_epoch), _known(start))
            for producer_id, epoch, _, _, coordinator_epoch, start in producers
        }
        assert ours[place] == answered


def _known(number: int) -> int | None:
    return None if number == NOBODY else number


def test_clients_went_on_under_the_next_version() -> None:
    """A COMMIT marker of version 1 has the epoch of the data that it ends, one of version 2 the next."""
    steps: dict[int, set[int]] = {}
    for file in inputs_of(CAPTURE / "log-dirs"):
        written: dict[int, int] = {}
        for row in (row for batches in file.batches for row in batches.rows().to_pylist()):
            producer_id, epoch = row["producer_id"], row["producer_epoch"]
            if row["marker"] == "COMMIT" and producer_id in written:
                steps.setdefault(producer_id, set()).add(epoch - written[producer_id])
            elif not row["is_control"] and producer_id is not None:
                written[producer_id] = epoch
    assert sum(found == {0, 1} for found in steps.values()) >= 4
