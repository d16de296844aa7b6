"""Mutations: what can go missing, get mixed up or be handed over differently on the way from brokers to an audit.

Every mutation depends on its random source only, says in a few words what it did, and keeps an operator's word only
where it is still true afterwards.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.proof.hostile.subjects import Files, Subject
from tests.tools.forms.state_writer import STATE_TOPIC
from tests.tools.inputs import RANGE_BYTES
from tests.tools.world.texts import CONSOLE

COMPLETE, COPIED_LAST = "transaction_state_complete", "state_copied_last"
_SECTION = b"\nDumping "


@dataclass(frozen=True)
class Given:
    """What is handed to one audit: captures by name, settings, and what was done to them, in words."""

    captures: dict[str, Files]
    settings: dict[str, Any]
    range_bytes: int
    done: tuple[str, ...] = ()

    def but(self, capture: str, files: Files, done: str, *untrue: str) -> Given:
        """With other files in one capture; words that this makes untrue are taken back."""
        settings = {name: value for name, value in self.settings.items() if name not in untrue}
        captures = self.captures | {capture: files}
        return replace(self, captures=captures, settings=settings, done=(*self.done, done))


@dataclass
class Mutator:
    """Draws mutations of one subject from a random source."""

    source: random.Random
    subject: Subject
    others: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.others = tuple(self.subject.captures)

    def start(self) -> Given:
        """One capture of the subject, or several with the older ones behind the newest."""
        count = self.source.randint(1, len(self.others))
        names = self.others[-count:] if self.source.random() < 0.7 else (self.source.choice(self.others),)
        captures = {name: dict(self.subject.captures[name]) for name in names}
        settings = dict(self.subject.settings)
        if names[-1] in self.subject.as_of_ms and self.source.random() < 0.3:
            settings["as_of_ms"] = self.subject.as_of_ms[names[-1]]
        return Given(captures, settings, RANGE_BYTES, (f"captures {', '.join(names)}",))

    def taken_away(self, given: Given) -> Given:
        """One to four mutations that take evidence away, or mix it."""
        kinds: tuple[Callable[[Given], Given], ...] = (
            self.files_removed,
            self.lines_removed,
            self.lines_removed,
            self.cut,
            self.cut,
            self.state_partition_removed,
            self.snapshots_removed,
            self.segment_removed,
            self.capture_forgotten,
            self.mixed,
            self.mixed,
        )
        for _ in range(self.source.choice((1, 1, 2, 3, 4))):
            given = self.source.choice(kinds)(given)
        return given

    def handed_over_differently(self, given: Given, *, is_whole: bool) -> Given:
        """One to three mutations that take nothing away: copies, names, order, compression.

        Where the files are whole, also other splits: what follows a damaged section in one file is not proven to be a
        file of its own, and batches beside a break are found by range.
        """
        kinds = [self.duplicated, self.renamed, self.compressed]
        kinds += [self.split, self.joined, self.other_ranges] if is_whole else []
        for _ in range(self.source.randint(1, 3)):
            given = self.source.choice(kinds)(given)
        return given

    # Evidence is taken away.

    def files_removed(self, given: Given) -> Given:
        """Any files of one capture."""
        capture, files = self._capture(given)
        gone = self.source.sample(sorted(files), self.source.randint(0, max(len(files) - 1, 0)))
        kept = {name: data for name, data in files.items() if name not in gone}
        return given.but(capture, kept, f"without {', '.join(gone)}", *_untrue(gone))

    def state_partition_removed(self, given: Given) -> Given:
        """One partition of `__transaction_state`, or the console export."""
        capture, files = self._capture(given)
        states = [name for name in sorted(files) if is_state(name)]
        gone = self.source.sample(states, min(len(states), 1))
        kept = {name: data for name, data in files.items() if name not in gone}
        return given.but(capture, kept, f"without {', '.join(gone)}", *_untrue(gone))

    def snapshots_removed(self, given: Given) -> Given:
        """Some or all producer snapshots."""
        capture, files = self._capture(given)
        snapshots = [name for name in sorted(files) if "snapshot" in name]
        gone = self.source.sample(snapshots, self.source.randint(0, len(snapshots)))
        return given.but(
            capture, {n: d for n, d in files.items() if n not in gone}, f"without {len(gone)} snapshots {gone}"
        )

    def lines_removed(self, given: Given) -> Given:
        """A range of whole lines of one file, anywhere."""
        capture, files = self._capture(given)
        if not files:
            return given
        name = self._file(files)
        lines = files[name].splitlines(keepends=True)
        first = self.source.randint(0, len(lines))
        after = self.source.choice(
            (first + 1, first + 2, first + 5, self.source.randint(first, len(lines)), len(lines))
        )
        text = b"".join(lines[:first] + lines[after:])
        done = f"{name} without lines {first + 1} to {after}"
        return given.but(capture, files | {name: text}, done, *_untrue([name], is_changed=True))

    def cut(self, given: Given) -> Given:
        """One file ends early: at any byte, or after any line."""
        capture, files = self._capture(given)
        if not files:
            return given
        name = self._file(files)
        data = files[name]
        at = self.source.randint(0, len(data))
        if self.source.random() < 0.6:
            at = data.rfind(b"\n", 0, at) + 1
        done = f"{name} cut at byte {at}"
        return given.but(capture, files | {name: data[:at]}, done, *_untrue([name], is_changed=True))

    def segment_removed(self, given: Given) -> Given:
        """One `Dumping …` section of one file: a segment that was not copied, or was deleted."""
        capture, files = self._capture(given)
        several = [name for name in sorted(files) if len(sections_of(files[name])) > 1]
        if not several:
            return given
        name = self.source.choice(several)
        sections = sections_of(files[name])
        gone = self.source.randrange(len(sections))
        text = b"".join(sections[:gone] + sections[gone + 1 :])
        done = f"{name} without section {gone}"
        return given.but(capture, files | {name: text}, done, *_untrue([name], is_changed=True))

    def capture_forgotten(self, given: Given) -> Given:
        """One capture of several is taken out of the warehouse: gaps that it filled are open again."""
        if len(given.captures) < 2:
            return given
        names = [*given.captures]
        gone = self.source.choice(names)
        # The moment that somebody gave was that of the newest one.
        is_told = gone == names[-1]
        settings = {name: value for name, value in given.settings.items() if not (is_told and name == "as_of_ms")}
        kept = {name: files for name, files in given.captures.items() if name != gone}
        return replace(given, captures=kept, settings=settings, done=(*given.done, f"capture {gone} forgotten"))

    # Captures are mixed.

    def mixed(self, given: Given) -> Given:
        """Files of another capture of the cluster, instead of this one's or beside them."""
        capture, files = self._capture(given)
        other = self.source.choice(self.others)
        found = self.subject.captures[other]
        kind = self.source.choice(("any", "state", "logs", "snapshots"))
        names = [
            name
            for name in sorted(found)
            if kind == "any" or kind == ("state" if is_state(name) else "snapshots" if "snapshot" in name else "logs")
        ]
        if kind == "any":
            names = self.source.sample(names, self.source.randint(0, len(names)))
        is_beside = self.source.random() < 0.4
        taken = {f"{other}/{name}" if is_beside else name: found[name] for name in names}
        done = (
            f"{'with' if is_beside else 'exchanged for'} {kind} of {other}: {', '.join(names) if kind == 'any' else ''}"
        )
        # Nobody could say any more which was copied last. A whole export of the state beside or instead of another is
        # still all of it, as of its own time.
        untrue = [COPIED_LAST, *([COMPLETE] if kind == "any" else [])] if names else []
        return given.but(capture, files | taken, done, *untrue)

    # Nothing is taken away.

    def duplicated(self, given: Given) -> Given:
        """Some files twice, under other names."""
        capture, files = self._capture(given)
        names = self.source.sample(sorted(files), self.source.randint(0, len(files)))
        again = {f"again/{name}": files[name] for name in names}
        return given.but(capture, files | again, f"{len(names)} files twice")

    def renamed(self, given: Given) -> Given:
        """All files under names in another order."""
        capture, files = self._capture(given)
        names = self.source.sample(sorted(files), len(files))
        other = {f"{k:04}.txt": files[name] for k, name in enumerate(names)}
        return given.but(capture, other, "in another order")

    def compressed(self, given: Given) -> Given:
        """Some files as gzip."""
        capture, files = self._capture(given)
        names = self.source.sample(sorted(files), self.source.randint(0, len(files)))
        changed = {name: gzip.compress(files[name], 1, mtime=0) for name in names if not _is_gzip(files[name])}
        return given.but(capture, files | changed, f"{len(changed)} files compressed")

    def split(self, given: Given) -> Given:
        """One dump of several segments as a file for each."""
        capture, files = self._capture(given)
        several = [name for name in sorted(files) if len(sections_of(files[name])) > 1]
        if not several:
            return given
        name = self.source.choice(several)
        parts = {f"{name}.{k}": part for k, part in enumerate(sections_of(files[name]))}
        kept = {other: data for other, data in files.items() if other != name}
        return given.but(capture, kept | parts, f"{name} as {len(parts)} files")

    def joined(self, given: Given) -> Given:
        """Some dumps in one file, one after another."""
        capture, files = self._capture(given)
        dumps = [name for name in sorted(files) if files[name].startswith(b"Dumping ") and files[name].endswith(b"\n")]
        names = self.source.sample(dumps, self.source.randint(0, len(dumps)))
        if len(names) < 2:
            return given
        kept = {name: data for name, data in files.items() if name not in names}
        together = {f"together.{len(given.done)}": b"".join(files[name] for name in names)}
        return given.but(capture, kept | together, f"{', '.join(names)} in one file")

    def other_ranges(self, given: Given) -> Given:
        """Ranges of another size for the tasks that scan."""
        size = self.source.choice((777, 5_000, 20_000))
        return replace(given, range_bytes=size, done=(*given.done, f"ranges of {size} bytes"))

    def _capture(self, given: Given) -> tuple[str, Files]:
        name = self.source.choice(sorted(given.captures))
        return name, given.captures[name]

    def _file(self, files: Files) -> str:
        """Any file; the coordinators' ones as often as all others."""
        states = [name for name in sorted(files) if is_state(name)]
        return self.source.choice(states if states and self.source.random() < 0.5 else sorted(files))


def is_state(name: str) -> bool:
    """A file of the coordinators' side."""
    return STATE_TOPIC in name or CONSOLE in name


def sections_of(data: bytes) -> list[bytes]:
    """The `Dumping …` sections of a dump that is whole; the text as it is where it is none."""
    if not data.startswith(b"Dumping ") or not data.endswith(b"\n"):
        return [data]
    first, *others = data.split(_SECTION)
    parts = [first, *(_SECTION[1:] + part for part in others)]
    return [part + b"\n" for part in parts[:-1]] + parts[-1:]


def _untrue(names: list[str], *, is_changed: bool = False) -> list[str]:
    """The words that are no longer true without these files, or with less in them."""
    if not any(is_state(name) for name in names):
        return []
    # What is left of the state is as new as before, where whole files are missing; a cut one is older.
    return [COMPLETE, COPIED_LAST] if is_changed else [COMPLETE]


def _is_gzip(data: bytes) -> bool:
    return data.startswith(b"\x1f\x8b")
