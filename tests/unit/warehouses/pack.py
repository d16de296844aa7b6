"""Packs what `make-1.0.0.sh` wrote, alike each time but for the ids and times that are in the tables themselves."""

import gzip
import json
import sys
import tarfile
from pathlib import Path


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Nobody's name, no time, no lock of a writer."""
    if ".locks" in Path(member.name).parts:
        return None
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


def main(made: Path) -> None:
    """Beside this file: one archive of each warehouse, and one file of all answers."""
    here = Path(__file__).parent
    for name in ("1.0.0", "1.0.0-forged", "1.0.0-cut"):
        packed = gzip.GzipFile(here / f"{name}.tar.gz", "wb", mtime=0)
        with packed, tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(made / name, name, filter=_plain)
    answers = {}
    for file in sorted((made / "answers").iterdir()):
        text = file.read_text(encoding="utf-8")
        is_lines = file.stem == "abort-plan"
        answers[file.stem] = [json.loads(line) for line in text.splitlines()] if is_lines else json.loads(text)
    (here / "1.0.0-answers.json").write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
