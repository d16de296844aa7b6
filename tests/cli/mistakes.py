"""What people get wrong, and what they are answered: docs/mistakes.md is made of it, and a test runs every line.

At most three of a kind. The commands run in the folder that `tests.cli.mistaken` fills; in answers it is `{folder}`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class When(StrEnum):
    """When the answer comes."""

    BEFORE = "before Spark starts"
    AFTER = "by Spark"
    ALONE = "before Spark starts, of a machine"  # asked of a process of its own
    INTERRUPTED = "when Ctrl-C is pressed"


OR_SKIP = "\nerror: Or pass --skip-unrecognised: the report then names what was left out"


class Mistake(NamedTuple):
    """One slip: the command behind `txn-analysis`, and the whole answer but for progress and usage.

    `pressed_at` is the function at whose call somebody presses Ctrl-C.
    """

    wrong: str
    command: str
    answer: str
    exit_code: int = 2
    when: When = When.BEFORE
    pressed_at: str = ""

    def answer_in(self, folder: Path) -> str:
        """The answer where the command runs in a folder."""
        return self.answer.replace("{folder}", str(folder))


_INTERRUPTED = "interrupted: what earlier runs wrote is intact; the same command can be run again, and starts over"

# fmt: off  # a table: what is wrong and the command on one line, the answer below
KINDS: dict[str, tuple[Mistake, ...]] = {
    "Paths": (
        Mistake(
            "a slip in a path",
            "audit segmnts",
            "error: segmnts: no such file or folder. Check the path; quote a glob so that the shell does not change it",
        ),
        Mistake("a folder without files", "audit empty", "error: empty: no files in this folder. Check the path"),
        Mistake(
            "a path with a space, not quoted",
            "audit broker 1/segments state",
            "error: 1/segments: no such file or folder. Check the path; quote a glob so that the shell does"
            " not change it\n"
            "error: broker: no such file or folder. Check the path; quote a glob so that the shell does not"
            " change it",
        ),
    ),
    "Standard input": (
        Mistake(
            "a pipe, named twice",
            "audit - - state",
            "error: -: standard input is named twice, and can be read once. Name it once",
        ),
        Mistake(
            "a pipe through which nothing comes",
            "audit segments -",
            "error: -: nothing came through standard input. See what the command before the pipe says, and run it"
            " again",
            when=When.ALONE,
        ),
    ),
    "What cannot be read twice": (
        Mistake(
            "a named pipe",
            "audit pipe",
            "error: pipe: not a regular file. Save the text to a file first, it is read more than once",
        ),
    ),
    "URIs": (
        Mistake(
            "a kind of storage that is not known",
            "audit ftp://copies/orders",
            "error: ftp://copies/orders: no storage that is known begins with ftp://. Give a path, or a URI with s3://"
            " (or s3a://), gs://, abfss://, hdfs:// or file://",
        ),
        Mistake(
            "credentials in a name",
            "audit s3://AKIA:secret@copies/orders",
            "error: s3://…@copies/orders: credentials do not belong into a name. Give them in the environment, a"
            " profile or a role",
        ),
        Mistake(
            "a name without a bucket",
            "audit s3:///orders",
            "error: s3:///orders: names no bucket. Give s3://BUCKET/NAME",
        ),
    ),
    "A warehouse in a store": (
        Mistake(
            "a warehouse on storage that is not known",
            "report --warehouse dbfs://audits/kafka",
            "error: dbfs://audits/kafka: no storage that is known begins with dbfs://. Give a path, or a URI with s3://"
            " (or s3a://), gs://, abfss://, hdfs:// or file://",
        ),
        Mistake(
            "a warehouse in a store by a strange name",
            "report --warehouse 's3://audits/a b'",
            "error: s3://audits/a b: a warehouse in a store has a name of letters, digits and _ . = + - alone",
        ),
    ),
    "Names that lead elsewhere": (
        Mistake(
            "a glob that matches nothing",
            "audit 'copies/*.txt'",
            "error: copies/*.txt: no such file or folder. Check the path; quote a glob so that the shell "
            "does not change it",
        ),
        Mistake(
            "a link to a file that is gone",
            "audit gone.txt",
            "error: gone.txt: cannot be read (No such file or directory). Copy the file again",
        ),
        Mistake(
            "a folder with a link out of it",
            "audit linked",
            "error: linked/orders-0.txt: a link out of the given folder, or to a folder. Name its target instead",
        ),
    ),
    "Texts": (
        Mistake(
            "an empty file",
            "audit empty.txt",
            "error: empty.txt: byte 0: the file is empty. Copy it again, or leave it out" + OR_SKIP,
        ),
        Mistake(
            "a file of something else",
            "audit segments notes.txt",
            "error: notes.txt: byte 0: not a text that this version knows. Give it the text of "
            "kafka-dump-log, or an export of __transaction_state, or leave the file out" + OR_SKIP,
        ),
        Mistake(
            "a copy that was cut",
            "ingest cut.txt",
            "error: cut.txt: byte 29656: the text ends inside this line. Copy the file again" + OR_SKIP,
        ),
    ),
    "Texts as another program left them": (
        Mistake(
            "a cut gzip file",
            "audit cut.txt.gz",
            "error: cut.txt.gz: byte 0: the gzip stream is cut or damaged (Compressed file ended before the"
            " end-of-stream marker was reached). Copy the file again" + OR_SKIP,
        ),
        Mistake(
            "line ends of Windows",
            "audit crlf.txt",
            "error: crlf.txt: byte 0: lines end in CR LF, as Windows writes them. Change them to LF: tr -d "
            "'\\r' < FILE > NEW_FILE" + OR_SKIP,
        ),
        Mistake(
            "UTF-16, as PowerShell writes it",
            "audit utf16.txt",
            "error: utf16.txt: byte 0: UTF-16 text, as PowerShell's redirection writes it. Dump again from "
            "cmd.exe, or change it to UTF-8: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE" + OR_SKIP,
        ),
    ),
    "Texts that hold no answer": (
        Mistake(
            "a dump by a tool that is too old",
            "audit old.txt",
            "error: old.txt: byte 0: the first line of this log segment is not one that kafka-dump-log 2.0.1 "
            "to 4.4 prints. Dump the file again, with the tool of such a version: it reads the files of "
            "older brokers" + OR_SKIP,
        ),
        Mistake(
            "a dump without its first line",
            "audit tail.txt",
            "error: tail.txt: byte 0: it begins inside a dump, after the `Dumping` line that says which "
            "partition it is of. Give it the whole text of kafka-dump-log, from its first line on" + OR_SKIP,
        ),
        Mistake(
            "an export by the wrong formatter",
            "audit consumer.txt",
            "error: consumer.txt: byte 0: an export of the default formatter, which prints the records of "
            "__transaction_state as raw bytes. Export again with --formatter "
            "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter (0.11 to 3.9) or "
            "org.apache.kafka.tools.consumer.TransactionLogMessageFormatter (3.9 and newer)" + OR_SKIP,
        ),
    ),
    "Verbs and options": (
        Mistake(
            "a verb that does not exist", "audits segments", "Error: No such command 'audits'. Did you mean 'audit'?"
        ),
        Mistake(
            "an option that does not exist",
            "audit segments --formt json",
            "Error: No such option: --formt (Possible options: --format)",
        ),
        Mistake("an option without its value", "verify --since", "Error: Option '--since' requires an argument."),
    ),
    "A shell's habits": (
        Mistake(
            "the help of a verb with a slip",
            "help explian",
            "Error: No such command 'explian'. Did you mean 'explain'?",
        ),
        Mistake("a word behind version", "version now", "Error: Got unexpected extra argument(s) (now)"),
        Mistake(
            "a shell whose completion is not known",
            "completion tcsh",
            "Error: Invalid value for 'SHELL': Value error, 'tcsh' is not one of 'bash', 'zsh', 'fish'.",
        ),
    ),
    "The copy kit": (
        Mistake(
            "a broker's folder behind the verb: the script that it prints takes it, on the broker",
            "copy-kit /var/lib/kafka",
            "Error: Got unexpected extra argument(s) (/var/lib/kafka)",
        ),
    ),
    "What is printed as it is": (
        Mistake(
            "--verbose without --version",
            "--verbose",
            "Error: Invalid value for --verbose: it says more of --version: give both",
        ),
        Mistake("a topic behind the runbook", "runbook orders", "Error: Got unexpected extra argument(s) (orders)"),
    ),
    "The demo and the doctor": (
        Mistake(
            "a folder that holds something else",
            "demo --to segments",
            "error: --to segments: this is not empty, and no earlier demo made it: give a new folder",
        ),
        Mistake("a file to look at", "doctor segments", "Error: Got unexpected extra argument(s) (segments)"),
        Mistake(
            "a form that it does not have",
            "doctor --format csv",
            "Error: Invalid value for '--format': Value error, 'csv' is not one of 'text', 'json'.",
        ),
    ),
    "What is left out": (
        Mistake("the files", "audit", "Error: Missing argument 'PATH'."),
        Mistake("the id", "describe --warehouse w", "Error: Missing option '--transactional-id'."),
        Mistake(
            "the partition",
            "describe-producers --topic orders",
            "Error: Invalid value for --partition: give --topic and --partition once each, or --all",
        ),
    ),
    "What is given twice": (
        Mistake(
            "a cluster",
            "report --cluster east --cluster west",
            "Error: Option '--cluster' is given 2 times, but takes one value: give it once.",
        ),
        Mistake(
            "the topic whose one partition is shown",
            "describe-producers --topic orders --topic payments --partition 0",
            "Error: Invalid value for --topic: give --topic and --partition once each, or --all",
        ),
        Mistake(
            "a topic, once with a slip",
            "find-hanging --warehouse w --cluster east --topic orders --topic nosuch",
            "error: --topic nosuch: this run saw no such topic; it saw __transaction_state, ledger.events, "
            "orders, payments",
            when=When.AFTER,
        ),
    ),
    "What is empty, as a variable that was never set": (
        Mistake(
            "a cluster",
            "audit segments --cluster ''",
            "error: --cluster string should have at least 1 character, got ''; the default is default (the "
            "cluster that the files come from; one warehouse can hold several)",
        ),
        Mistake(
            "a run",
            "report --warehouse w --cluster east --run ''",
            "error: {folder}/w: no run '' here: the last ones are run-8b89e5ca7a6c28bb of cluster east",
            when=When.AFTER,
        ),
        Mistake(
            "a topic",
            "list --warehouse w --cluster east --topic ''",
            "error: --topic '': this run saw no such topic; it saw __consumer_offsets, __transaction_state, "
            "ledger.events, orders, payments",
            when=When.AFTER,
        ),
    ),
    "Words to choose from": (
        Mistake(
            "a format that a verb does not have",
            "audit segments --format xml",
            "Error: Invalid value for '--format': Value error, 'xml' is not one of 'text', 'json', 'ndjson', 'csv',"
            " 'html', 'chat', 'prometheus'.",
        ),
        Mistake(
            "a verdict that does not exist",
            "audit segments --fail-on hangs",
            "Error: Invalid value for '--fail-on': Value error, 'hangs' is not one of 'in_progress', "
            "'coordinated', 'inconclusive', 'suspect', 'hanging'.",
        ),
        Mistake(
            "a state that does not exist",
            "list --state ongoin",
            "error: --state ongoin: unknown; the states are Empty, Ongoing, PrepareCommit, PrepareAbort, "
            "CompleteCommit, CompleteAbort, PrepareEpochFence",
        ),
    ),
    "Numbers and times": (
        Mistake(
            "a moment in words",
            "audit segments --as-of yesterday",
            "error: --as-of is neither epoch milliseconds nor ISO-8601 (like 2026-11-21T03:15:00Z), got "
            "'yesterday'; the default is not set (when the files were copied: epoch ms or ISO-8601; by "
            "default the newest broker time in them)",
        ),
        Mistake(
            "more partitions of the state than Kafka can have",
            "audit segments --transaction-state-partitions 2000000",
            "error: --transaction-state-partitions should be less than or equal to 1000000, got 2000000; "
            "Kafka's default is not set (the brokers' `transaction.state.log.num.partitions`: partitions of"
            " `__transaction_state`; by default the only count that fits every id in a dump or folder, else"
            " 50)",
        ),
        Mistake(
            "a text that is too narrow",
            "report --width 20",
            "Error: Invalid value for '--width': Input should be greater than or equal to 40",
        ),
    ),
    "The file of --config": (
        Mistake(
            "it is not there",
            "audit segments --config none.toml",
            "error: --config none.toml: cannot be read: No such file or directory; check the path",
        ),
        Mistake(
            "it is no TOML",
            "audit segments --config text.toml",
            "error: text.toml: is not TOML, lines of `name = value`: Expected '=' after a key in a "
            "key/value pair (at line 1, column 9)",
        ),
        Mistake(
            "it has a name with a slip",
            "audit segments --config wrong.toml",
            "error: wrong.toml: clustr is not a setting; did you mean cluster?",
        ),
    ),
    "The environment": (
        Mistake(
            "a variable with a slip",
            "TXN_ANALYSIS_CLUSTR=east audit segments",
            "error: environment: TXN_ANALYSIS_CLUSTR is not a setting; did you mean cluster?",
        ),
        Mistake(
            "a variable with a bad value",
            "TXN_ANALYSIS_FAIL_ON=hangs audit segments",
            "error: environment: TXN_ANALYSIS_FAIL_ON should be 'in_progress', 'coordinated', "
            "'inconclusive', 'suspect' or 'hanging', got 'hangs'; the default is hanging (the most harmless"
            " verdict that makes the exit code 1)",
        ),
    ),
    "Other files that an audit takes": (
        Mistake(
            "a --topic-config that is not there",
            "audit segments --topic-config none.txt",
            "error: --topic-config none.txt: cannot be read: No such file or directory; check the path",
        ),
        Mistake(
            "a --topic-config of something else",
            "audit segments --topic-config notes.txt",
            "error: --topic-config notes.txt: no topic in it; save what `kafka-configs.sh --bootstrap-server "
            '"$BROKERS" --describe --all --entity-type topics` prints',
        ),
        Mistake(
            "a size with a unit",
            "audit segments --free-bytes 10GB",
            "Error: Invalid value for '--free-bytes': Input should be a valid integer, unable to parse "
            "string as an integer",
        ),
    ),
    "Outputs": (
        Mistake(
            "a folder that does not exist",
            "audit segments -o reports/night.txt",
            "error: -o reports/night.txt: the folder does not exist; create it first",
        ),
        Mistake(
            "a folder in place of a file",
            "audit segments -o empty",
            "error: -o empty: this is a folder; give a file in it",
        ),
        Mistake(
            "a disk that is full",
            "report --warehouse w --cluster east -o /dev/full",
            "error: -o /dev/full: cannot be written: No space left on device; fix that, or give another FILE",
            when=When.AFTER,
        ),
    ),
    "Warehouses that are not there": (
        Mistake(
            "none was made yet, or in another folder",
            "report",
            "error: txn-warehouse: no warehouse here: give the --warehouse of an audit, or audit first",
        ),
        Mistake(
            "a slip in its path",
            "find-hanging --warehouse nowhere",
            "error: nowhere: no warehouse here: give the --warehouse of an audit, or audit first",
        ),
        Mistake(
            "a part of its path is a file",
            "audit segments --warehouse notes.txt/w",
            "error: {folder}/notes.txt/w: {folder}/notes.txt is not a folder. Give another --warehouse",
        ),
    ),
    "What a warehouse does not hold": (
        Mistake(
            "runs of another cluster only",
            "verify --warehouse w",
            "error: {folder}/w: no run of cluster default yet: give --cluster east",
            when=When.AFTER,
        ),
        Mistake(
            "a cluster with a slip",
            "report --warehouse w --cluster est",
            "error: {folder}/w: no run of cluster est yet: give --cluster east",
            when=When.AFTER,
        ),
        Mistake(
            "a table, which somebody removed",
            "report --warehouse damaged --cluster east",
            "error: {folder}/damaged: no warehouse here (partition_health is missing): give the --warehouse"
            " of an audit, or audit first",
            when=When.AFTER,
        ),
    ),
    "Storage": (
        Mistake(
            "a table in place of a warehouse",
            "ingest segments --warehouse table/runs",
            "error: {folder}/table/runs: {folder}/table/runs is a Delta table. Give the folder of a warehouse"
            " as --warehouse, or a new one",
        ),
        Mistake(
            "a disk that lost a part of a file",
            "list --warehouse torn --cluster east",
            "error: {folder}/torn/runs: the warehouse is damaged here. "
            "Restore this folder from a backup, or audit the files again into a new --warehouse",
            when=When.AFTER,
        ),
    ),
    "Removed": (
        Mistake(
            "an option of an earlier version",
            "audit segments state --depth quick",
            "Error: --depth was removed: leave it out",
        ),
        Mistake(
            "a setting of an earlier version",
            "audit segments --config depth.toml",
            "error: depth.toml: depth was removed: delete the line",
        ),
    ),
    "Parts of the checksums": (
        Mistake(
            "the eighth of seven",
            "audit segments state --verify-part 8/7",
            "error: --verify-part is no part such as 3/7, the third of seven, got '8/7'; the default is not set (look "
            "at the checksum of every batch in one part of the segments of a log directory, such as 3/7; over seven "
            "nights in all)",
        ),
        Mistake(
            "all of them as well",
            "audit segments state --verify --verify-part 3/7 --engine local --warehouse new",
            "error: --verify-part: --verify looks at all parts: leave one of them out",
        ),
    ),
    "Pseudonyms": (
        Mistake(
            "a key that others may read",
            "TXN_ANALYSIS_PSEUDONYM_KEY=notes.txt report --warehouse w --cluster east --anonymize",
            "error: pseudonym_key notes.txt: others may read it, and undo every pseudonym: chmod 600 notes.txt",
        ),
    ),
    "Options that `-o` took the place of": (
        Mistake(
            "that of the page",
            "audit segments state --html night",
            "Error: --html night: its name must end with .html: give -o FILE.html",
        ),
        Mistake(
            "that of the metrics",
            "audit segments state --prometheus night.txt",
            "Error: --prometheus night.txt: its name must end with .prom: give -o FILE.prom",
        ),
    ),
    "Another version": (
        Mistake(
            "a warehouse of another version",
            "audit segments state --warehouse other-version --cluster east",
            "error: {folder}/other-version: made by another version of txn-analysis: audit again into a new"
            " --warehouse",
            when=When.AFTER,
        ),
        Mistake(
            "the same, asked about",
            "report --warehouse other-version --cluster east",
            "error: {folder}/other-version: made by another version of txn-analysis: audit again into a new"
            " --warehouse",
            when=When.AFTER,
        ),
    ),
    "Forms of files": (
        Mistake(
            "a page of rows",
            "list -o list.html",
            "error: -o list.html: its suffix says no form of this verb (.txt, .json, .ndjson, .csv): give such a FILE,"
            " or --format text, json, ndjson or csv",
        ),
        Mistake("one file for two forms", "report -o night.txt -o night.txt", "error: -o: one file is given twice"),
    ),
    "Decisions": (
        Mistake(
            "a finding that is not there",
            "accept --warehouse w --cluster east --finding orders-0@7 --until 2026-12-24 --reason planned",
            "error: --finding orders-0@7: no such open transaction in run run-8b89e5ca7a6c28bb: give"
            " TOPIC-PARTITION@START of one that `txn-analysis report --run run-8b89e5ca7a6c28bb` shows, such as"
            " orders-0@161, or its finding_id",
            when=When.AFTER,
        ),
        Mistake(
            "a date that has passed",
            "accept --warehouse w --cluster east --finding orders-0@161 --until 2026-11-21 --reason planned",
            "error: --until 2026-11-21T00:00:00.000Z: is not after the files of run run-8b89e5ca7a6c28bb "
            "(2026-11-21T02:59:50.737Z)",
            when=When.AFTER,
        ),
        Mistake(
            "a file of decisions without its evidence",
            "report --warehouse w --cluster east --accepted accepted.toml",
            "error: accepted.toml: entry 1, rule: field required; `txn-analysis accept --format toml` prints entries",
            when=When.AFTER,
        ),
    ),
    "Captures": (
        Mistake(
            "a capture with a slip",
            "forget --warehouse w --cluster east --capture capture-64",
            "error: {folder}/w: cluster east has no capture capture-64; it has capture-64a3e90f7bc2. `txn-analysis "
            "captures --warehouse {folder}/w` lists those of all clusters",
            when=When.AFTER,
        ),
        Mistake("no capture at all", "forget --warehouse w", "Error: Missing option '--capture'."),
        Mistake(
            "the captures of a warehouse that is not there",
            "captures --warehouse nowhere",
            "error: nowhere: no warehouse here: give the --warehouse of an audit, or audit first",
        ),
    ),
    "A calendar of nights": (
        Mistake(
            "the nights of a cluster that is not there",
            "captures --warehouse w --cluster wets -o nights.html",
            "error: {folder}/w: cluster wets has no capture yet: give --cluster east, or audit its files first",
            when=When.AFTER,
        ),
        Mistake(
            "a page with a slip in its suffix",
            "captures --warehouse w -o nights.htm",
            "error: -o nights.htm: its suffix says no form of this verb (.txt, .json, .ndjson, .csv, .html): give such "
            "a FILE, or --format text, json, ndjson, csv or html",
        ),
    ),
    "What is old": (
        Mistake(
            "no age",
            "prune --warehouse w",
            "error: give --keep AGE, such as --keep 90d, or keep_ms in the settings; it is above 0",
        ),
        Mistake(
            "an age without a unit",
            "prune --warehouse w --keep 90",
            "error: --keep 90: is no age (a number and m, h, d or w, like 90d)",
        ),
        Mistake(
            "a warehouse to prune that is not there",
            "prune --warehouse nowhere --keep 90d",
            "error: nowhere: no warehouse here: give the --warehouse of an audit, or audit first",
        ),
    ),
    "Runs": (
        Mistake(
            "a run that does not exist",
            "report --warehouse w --cluster east --run run-1",
            "error: {folder}/w: no run run-1 here: the last ones are run-8b89e5ca7a6c28bb of cluster east",
            when=When.AFTER,
        ),
        Mistake(
            "the same, to compare with",
            "find-hanging --warehouse w --cluster east --since run-1",
            "error: {folder}/w: no run run-1 here: the last ones are run-8b89e5ca7a6c28bb of cluster east",
            when=When.AFTER,
        ),
        Mistake(
            "the same, to verify",
            "verify --warehouse w --cluster east --since run-1",
            "error: {folder}/w: no run run-1 here: the last ones are run-8b89e5ca7a6c28bb of cluster east",
            when=When.AFTER,
        ),
    ),
    "Topics and partitions": (
        Mistake(
            "a topic with a slip",
            "find-hanging --warehouse w --cluster east --topic order",
            "error: --topic order: this run saw no such topic; did you mean orders?",
            when=When.AFTER,
        ),
        Mistake(
            "a partition that the run did not see",
            "describe-producers --warehouse w --cluster east --topic orders --partition 9",
            "error: --partition 9: this run saw no such partition; of orders it saw 0 to 2",
            when=When.AFTER,
        ),
        Mistake(
            "a number that is no partition's",
            "find-hanging --topic orders --partition -1",
            "Error: Invalid value for '--partition': Input should be greater than or equal to 0",
        ),
    ),
    "Producers and coordinators": (
        Mistake(
            "a producer that the run did not see",
            "find-hanging --warehouse w --cluster east --producer-id 77",
            "error: --producer-id 77: this run saw no such producer; the verbs `list` and "
            "`describe-producers` show those that it saw",
            when=When.AFTER,
        ),
        Mistake(
            "a transactional id that it did not see",
            "describe --warehouse w --cluster east --transactional-id nobody",
            "error: transactional id nobody is in no record that this run saw; the verb `list` shows all ids",
            when=When.AFTER,
        ),
        Mistake(
            "a coordinator by the number of its broker",
            "list --coordinator 3",
            "error: --coordinator 3: dumps do not say which broker coordinates an id; give a partition, "
            "such as __transaction_state-3",
        ),
    ),
    "Some partitions": (
        Mistake(
            "a partition of no topic",
            "audit segments state --partition 0",
            "error: --partition needs --topic: say of which topic",
        ),
        Mistake(
            "a slip in a topic",
            "audit segments state --topic order --engine local --warehouse new",
            "error: --topic order: this call saw no such topic; did you mean orders?",
        ),
    ),
    "Metrics of some partitions": (
        Mistake(
            "by the suffix of a file",
            "audit segments state --topic orders -o night.txt -o metrics.prom",
            "error: -o and --format: metrics are of a whole cluster: leave out --topic and --partition",
        ),
    ),
    "Filters": (
        Mistake(
            "a partition of no topic", "explain --partition 0", "error: --partition needs --topic: say of which topic"
        ),
        Mistake(
            "a pattern that is none",
            "ended --transactional-id-pattern 'billing('",
            "error: --transactional-id-pattern billing(: is not a regular expression: missing ), "
            "unterminated subpattern at position 7; a backslash before a sign makes it stand for itself",
        ),
        Mistake(
            "a broker, of which files say nothing",
            "find-hanging --broker 1",
            "error: --broker: dumps do not say which broker leads a partition; use --topic and --partition",
        ),
    ),
    "Ended and explained transactions": (
        Mistake(
            "a cause that does not exist",
            "ended --cause timeout",
            "error: --cause timeout: unknown; the causes of an end are client_commit, client_abort, "
            "coordinator_timeout, fenced_by_new_instance, administrator_marker, unexplained",
        ),
        Mistake(
            "at most none",
            "ended --limit 0",
            "Error: Invalid value for '--limit': Input should be greater than or equal to 1",
        ),
        Mistake(
            "an offset at which nothing open begins",
            "explain --warehouse w --cluster east --start-offset 7",
            "error: no open transaction of this run fits; the verb `report` lists them",
            when=When.AFTER,
        ),
    ),
    "Statistics, and what is at risk": (
        Mistake(
            "statistics of no time at all",
            "stats --since 2026-11-21T03:00:00Z --until 2026-11-21T02:00:00Z",
            "error: --until must be later than --since: what ends at --until is left out",
        ),
        Mistake(
            "statistics from a moment that is none",
            "stats --since yesterday",
            "error: --since yesterday: is neither epoch milliseconds nor ISO-8601 (like 2026-11-21T03:15:00Z)",
        ),
        Mistake(
            "what happens within no time",
            "at-risk --within 0",
            "Error: Invalid value for '--within': Input should be greater than or equal to 1",
        ),
    ),
    "One offset, one owner": (
        Mistake(
            "an offset of no partition",
            "explain --offset 161",
            "error: --offset is of one partition: give --topic and --partition once each, and nothing else",
        ),
        Mistake(
            "nobody to ask about",
            "who --run run-1",
            "error: give one of --group, --transactional-id and --producer-id",
        ),
        Mistake(
            "an id that nobody has",
            "who --warehouse w --cluster east --transactional-id nobody",
            "error: --transactional-id nobody: this run saw no such id; no record of __transaction_state-1, which "
            "would hold it, names it; the verb `list` shows all",
            when=When.AFTER,
        ),
    ),
    "Parts of a plan": (
        Mistake(
            "a topic with a slip",
            "abort-plan --warehouse w --cluster east --topic order",
            "error: --topic order: this run saw no such topic; did you mean orders?",
            when=When.AFTER,
        ),
        Mistake(
            "a transactional id that the run did not see",
            "abort-plan --warehouse w --cluster east --transactional-id nobody",
            "error: --transactional-id nobody: this run saw no such id; the verb `list` shows all ids",
            when=When.AFTER,
        ),
        Mistake(
            "more partitions than the operator allows",
            "TXN_ANALYSIS_PLAN_MAX_PARTITIONS=3 abort-plan --warehouse w --cluster east",
            "error: the plan is for 4 partitions, more than plan_max_partitions (3): so many at once are "
            "rather a wrong setting or an incomplete copy. Look at the findings, then send a part (--topic,"
            " --transactional-id, --max-records), or say --yes-many",
            when=When.AFTER,
        ),
    ),
    "Forms of a plan": (
        Mistake(
            "a plan that is too old",
            "abort-plan --warehouse w --cluster east",
            "error: 4 records of the plan expired, the first at 2026-11-22T03:18:54.140Z: copy the files and audit "
            "again, or print the plan as it was with --expired",
            when=When.AFTER,
        ),
        Mistake(
            "the script in a file that is named like data",
            "abort-plan -o plan.json",
            "error: -o plan.json: its suffix says no form of this verb (.ndjson, .sh): give such a FILE, or --format "
            "commands, ndjson or write-txn-markers",
        ),
        Mistake(
            "an ended producer, told to the script before it runs",
            "abort-plan --ended billing-worker-17",
            "error: --ended belongs to --format write-txn-markers; the script takes it when it is run: sh plan.sh "
            "--ended ID",
        ),
    ),
    "Files of a plan": (
        Mistake(
            "a file that is not there",
            "abort-plan --check none.ndjson",
            "error: --check none.ndjson: cannot be read: No such file or directory; check the path",
        ),
        Mistake(
            "a file of something else",
            "abort-plan --check notes.txt",
            "error: notes.txt, line 1: is no record of a plan (it: Invalid JSON: expected value at line 1 "
            "column 1). Only what `abort-plan --format ndjson` prints can be checked",
        ),
        Mistake(
            "only a part of a file",
            "abort-plan --check plan.ndjson --topic orders",
            "error: --check takes the file as it is: leave out what narrows a plan",
        ),
    ),
    "The machine": (
        Mistake(
            "a master that Spark does not know",
            "audit segments --master sparkk://host",
            "error: --master sparkk://host: not a master of Spark; give local[*], local[N], "
            "spark://HOST:7077, yarn, k8s://https://HOST:443, or sc://HOST:15002 of a Spark Connect server",
        ),
        Mistake(
            "no JDK where JAVA_HOME says",
            "JAVA_HOME=/nowhere audit segments --master 'local[2]'",
            "error: Spark needs a JDK 17 or 21, but JAVA_HOME is /nowhere, which has no bin/java: install "
            "one (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless) and set JAVA_HOME to its folder",
            when=When.ALONE,
        ),
    ),
    "Who judges": (
        Mistake(
            "an engine that does not exist",
            "audit segments --engine duckdb",
            "Error: Invalid value for '--engine': Value error, 'duckdb' is not one of 'auto', 'local', 'spark'.",
        ),
        Mistake(
            "more than this process holds",
            "audit large.txt --engine local",
            "error: --engine local: there are 1.2 GB to judge, earlier captures included, and this process "
            "holds at most 1.1 GB, which is 79.7 MB less: leave --engine out, or give --engine spark",
        ),
    ),
    "Ctrl-C": (
        Mistake(
            "while Spark starts",
            "audit segments state --warehouse other --master 'local[2]'",
            _INTERRUPTED,
            130,
            When.INTERRUPTED,
            "txn_analysis.spark.session.session",
        ),
        Mistake(
            "while files are read",
            "ingest segments --warehouse other",
            _INTERRUPTED,
            130,
            When.INTERRUPTED,
            "txn_analysis.pipeline.steps.read_inputs",
        ),
        Mistake(
            "while a page is made",
            "report --warehouse w --cluster east --format html",
            _INTERRUPTED,
            130,
            When.INTERRUPTED,
            "txn_analysis.questions.loaded_report.pictures",
        ),
    ),
    "What could not be told": (
        Mistake(
            "the state was not copied",
            "audit segments --warehouse other --cluster west",
            "COULD NOT TELL: 9 transactions on 7 partitions: orders-0, orders-1, orders-2, payments-0, "
            "ledger.events-0 and 2 more\n"
            "Nothing is known to hang, but no partition of `__transaction_state` was given. What would "
            "settle it: audit\n"
            "them again with `__transaction_state`: all its partitions, copied after the logs, from their "
            "leaders.",
            3,
            When.AFTER,
        ),
        Mistake(
            "a wrong number of partitions of the state",
            "audit segments state --transaction-state-partitions 3 --warehouse other --cluster north",
            "COULD NOT TELL: 7 transactions on 7 partitions: orders-0, orders-1, orders-2, payments-0, "
            "ledger.events-0 and 2 more\n"
            "Nothing is known to hang, but ids in `__transaction_state` do not lie where they would among 3"
            " partitions.\n"
            "What would settle it: `--transaction-state-partitions 4`, the only count that fits the ids in "
            "it.",
            3,
            When.AFTER,
        ),
        Mistake(
            "nothing was copied again since the plan",
            "verify --warehouse w --cluster east",
            "could not tell what became of 4 aborts: no capture is later than that of run "
            "run-8b89e5ca7a6c28bb, which recommends them. Copy the files again, audit them, then verify",
            3,
            When.AFTER,
        ),
    ),
}
# fmt: on

MISTAKES = tuple(mistake for kind in KINDS.values() for mistake in kind)
