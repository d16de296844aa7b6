"""What is said where the files look like those of two clusters, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from txn_analysis.text.escape import shell_option, shell_word
from txn_analysis.text.words import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from txn_analysis.report.model import RunItem

_MOST_FOLDERS = 4


def looks_like(clusters: Mapping[str, Any]) -> str:
    """What was seen, from a run's record of it; without a full stop, not escaped."""
    if clusters["other_capture"] is not None:
        own, other = [f" ({_named(side)})" for side in clusters["sides"]] or ("", "")
        both = f"this capture{own} and capture {clusters['other_capture']}{other} in this warehouse"
        what = f"{both} look like those of two clusters"
    else:
        what = f"these files look like those of two clusters: {' beside '.join(map(_named, clusters['sides']))}"
    return f"{what} ({_why(clusters)})"


def what_to_do(clusters: Mapping[str, Any], run: RunItem) -> str:
    """What would settle it; not escaped."""
    if clusters["other_capture"] is None:
        are_few = all(len(side) <= _MOST_FOLDERS for side in clusters["sides"])
        apart = "" if are_few else "put the files of each cluster into a folder of its own, and "
        return f"{apart}audit these folders apart, each with its own `--cluster` or `--warehouse`"
    forget = f"`txn-analysis forget {shell_option('--cluster', run.cluster)} --capture"
    return (
        f"take out the one that is another cluster's, {forget} {shell_word(run.capture)}` or {forget} "
        f"{shell_word(clusters['other_capture'])}` (with the `--warehouse` of this audit), and audit its files with a "
        "`--cluster` of their own"
    )


def _named(folders: list[str]) -> str:
    return listed(folders, _MOST_FOLDERS)


def _why(clusters: Mapping[str, Any]) -> str:
    reasons = []
    if clusters["partition_count"]:
        counted = f"{clusters['partition_count']} of the {clusters['shared_count']} partitions that both have"
        reasons.append(f"they share no batch in {counted}")
    if clusters["cluster_ids"]:
        reasons.append(f"cluster.id {' and '.join(clusters['cluster_ids'])}")
    return "; ".join(reasons)
