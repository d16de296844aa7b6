"""What `make e2e` prints in the end: one row per broker."""

from collections import Counter

from tests.systems.e2e.captures import by_place
from tests.systems.e2e.story import Night, Place, Story, differences
from txn_analysis.plan.repair import Repair


def summary(told: dict[str, Story]) -> str:
    """The table of all brokers, and the reasons for differences."""
    heads = (
        *("broker", "made to hang", "found hanging", "repaired", "ended by their coordinator"),
        *("records lost by live transactions", "consumers unblocked", "differences from `find-hanging`"),
    )
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    lines += [_row(version, story) for version, story in told.items()]
    return "\n".join(lines) + "\n"


def _row(version: str, story: Story) -> str:
    made = {hang.place for hang in story.scene.hangs}
    found = {p for night in story.nights for p, f in by_place(night.report).items() if f.verdict == "hanging"}
    done = Counter(row["Repair"] for row in story.verified)
    freed = all(got["position"] == got["end"] for got in story.freed.values())
    ended = sum(outcome.repair is Repair.ENDED_BY_COORDINATOR for outcome in story.verified_second)
    cells = (version, len(made), len(made & found), done["repaired"], ended, len(story.lost), "yes" if freed else "no")
    return "| " + " | ".join(map(str, (*cells, _differences(version, story)))) + " |"


def _differences(version: str, story: Story) -> str:
    if story.nights[0].capture.hanging_by_the_broker is None:
        return f"{version} has none"
    reasons = [reason for night in story.nights[:2] for reason in reasons_of(night).values()]
    return ", ".join(f"{count} by {reason}" for reason, count in sorted(Counter(reasons).items())) or "none"


def reasons_of(night: Night) -> dict[Place, str]:
    """Why the broker's tool and the audit differ; what has no documented reason is `unexplained`."""
    theirs, ours = differences(night)
    found = by_place(night.report)
    reasons = dict.fromkeys(theirs | ours, "unexplained")
    reasons |= {place: "threshold" for place in theirs if place in found and found[place].rule == "not_late"}
    return reasons | {place: "clocks" for place in ours if found[place].lateness_basis == "broker_clock"}
