"""Settings: flags beat environment beat file beat defaults, and nothing misspelt is ever ignored."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.tools.cases import cases
from tests.tools.repository import ROOT
from txn_analysis.cli.config_file import config_file
from txn_analysis.errors import ConfigError
from txn_analysis.settings import Decides, Settings, deciding, flag_name, load_settings, parse_time
from txn_analysis.verdict import Verdict

CONF = ROOT / "conf"
NOTHING: Mapping[str, str] = {}


@pytest.fixture
def toml(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        file = tmp_path / "audit.toml"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write


def refusal(
    config_file: str | None = None, env: Mapping[str, str] = NOTHING, flags: Mapping[str, object] = NOTHING
) -> str:
    with pytest.raises(ConfigError) as refused:
        load_settings(config_file, env, flags)
    return str(refused.value)


def test_defaults_are_kafkas() -> None:
    settings = load_settings(None, NOTHING, {})
    assert settings.transaction_max_timeout_ms == 15 * 60 * 1000
    assert settings.transaction_state_partitions is None  # found in the ids; else Kafka's 50
    assert settings.transactional_id_expiration_ms == 7 * 24 * 60 * 60 * 1000
    assert settings.fail_on is Verdict.HANGING
    assert settings == Settings()


def test_flags_beat_environment_beats_file(toml: Callable[[str], str]) -> None:
    file = toml('cluster = "file"\nwarehouse = "file"\nmax_clock_skew_ms = 1\nfail_on = "suspect"')
    env = {"TXN_ANALYSIS_CLUSTER": "env", "TXN_ANALYSIS_WAREHOUSE": "env", "TXN_ANALYSIS_EXIT_ZERO": "true"}
    settings = load_settings(file, env, {"cluster": "flag", "warehouse": None, "as_of_ms": None})
    assert (settings.cluster, settings.warehouse, settings.max_clock_skew_ms) == ("flag", "env", 1)
    assert settings.fail_on is Verdict.SUSPECT
    assert settings.exit_zero
    assert settings.as_of_ms is None


def test_only_prefixed_variables_count() -> None:
    env = {"CLUSTER": "other", "HOME": "home"}
    assert load_settings(None, env, {}) == Settings()


def test_unknown_name_in_a_file_names_file_key_and_the_likely_one(toml: Callable[[str], str]) -> None:
    file = toml("transaction_max_timeout = 60000")
    assert refusal(file) == (
        f"{file}: transaction_max_timeout is not a setting; did you mean transaction_max_timeout_ms?"
    )


def test_a_setting_that_was_removed_says_what_to_do(toml: Callable[[str], str]) -> None:
    file = toml('depth = "quick"')
    assert refusal(file) == f"{file}: depth was removed: delete the line"
    assert refusal(env={"TXN_ANALYSIS_DEPTH": "full"}) == "environment: TXN_ANALYSIS_DEPTH was removed: delete the line"


def test_several_topics_and_partitions_are_listed_wherever_they_are_said(toml: Callable[[str], str]) -> None:
    said = {"TXN_ANALYSIS_TOPIC": "orders, payments", "TXN_ANALYSIS_PARTITION": "0,2"}
    of_file = toml('topic = ["orders", "payments"]\npartition = [0, 2]')
    for settings in (
        load_settings(None, said, {}),
        load_settings(of_file, NOTHING, {"topic": None, "partition": None}),
        load_settings(None, NOTHING, {"topic": ["orders", "payments"], "partition": [0, 2]}),
    ):
        assert (settings.topic, settings.partition) == (("orders", "payments"), (0, 2))
    assert load_settings(toml('topic = "orders"\npartition = 3'), NOTHING, {}).partition == (3,)
    assert refusal(env={"TXN_ANALYSIS_PARTITION": "x"}).startswith("environment: TXN_ANALYSIS_PARTITION ")
    assert "default is not set" in refusal(flags={"partition": [-1]})


def test_unknown_names_in_environment_and_flags() -> None:
    assert refusal(env={"TXN_ANALYSIS_CLUSTR": "x"}).startswith(
        "environment: TXN_ANALYSIS_CLUSTR is not a setting; did you mean cluster?"
    )
    assert refusal(flags={"zzz": 1}).startswith("--zzz is not a setting; there are warehouse, cluster,")


def test_bad_value_names_the_source_and_kafkas_default(toml: Callable[[str], str]) -> None:
    file = toml("transaction_max_timeout_ms = 0")
    problem = refusal(file)
    assert problem.startswith(f"{file}: transaction_max_timeout_ms should be greater than 0, got 0; Kafka's default is")
    assert "900000" in problem
    assert "transaction.max.timeout.ms" in problem
    assert "\n" not in problem


@cases(
    "field value",
    {
        "true-is-not-1-ms": ("transaction_max_timeout_ms", True),
        "negative-skew": ("max_clock_skew_ms", -1),
        "time-in-words": ("as_of_ms", "yesterday"),
        "time-before-kafka": ("as_of_ms", 0),
        "unknown-verdict": ("fail_on", "bad"),
        "neither-true-nor-false": ("state_copied_last", "maybe"),
        "empty-name": ("warehouse", ""),
        "empty-ranges": ("range_bytes", 0),
        "time-beyond-int64": ("as_of_ms", "9" * 26),
        "time-before-int64": ("as_of_ms", "-" + "9" * 26),
        "time-before-1970": ("as_of_ms", -5),
        "time-in-the-year-10000": ("as_of_ms", 253_402_300_800_000),
        "time-as-a-large-fraction": ("as_of_ms", 1e30),
        "date-of-five-digits": ("as_of_ms", "10000-01-01"),
        "date-beyond-the-calendar-in-utc": ("as_of_ms", "9999-12-31T23:59:59-14:00"),
        "date-before-the-calendar-in-utc": ("as_of_ms", "0001-01-01T00:00:00+14:00"),
        "timeout-beyond-kafkas-int": ("transaction_max_timeout_ms", 2**31),
        "expiration-beyond-kafkas-int": ("transactional_id_expiration_ms", 2**31),
        "more-state-partitions-than-any-cluster": ("transaction_state_partitions", 1_000_001),
        "skew-beyond-int64": ("max_clock_skew_ms", 10**26),
        "plan-that-outlives-the-calendar": ("plan_valid_ms", 10**26),
        "plan-beyond-all-partitions": ("plan_max_partitions", 10**26),
        "disk-beyond-int64": ("free_bytes", 10**26),
        "range-beyond-int64": ("range_bytes", 10**26),
    },
)
def test_bad_values_are_refused_in_one_line(field: str, value: object) -> None:
    problem = refusal(flags={field: value})
    assert problem.startswith(flag_name(field) + " ")
    assert f"got {value!r}" in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("field", "largest"),
    [
        ("as_of_ms", 253_402_300_799_999),
        ("transaction_max_timeout_ms", 2**31 - 1),
        ("transactional_id_expiration_ms", 2**31 - 1),
        ("transaction_state_partitions", 1_000_000),
        ("free_bytes", 2**63 - 1),
    ],
)
def test_the_largest_numbers_that_kafka_can_mean_are_taken(field: str, largest: int) -> None:
    assert getattr(load_settings(None, NOTHING, {field: largest}), field) == largest


def test_no_number_is_without_an_upper_bound() -> None:
    taken = []
    for field in Settings.model_fields:
        try:
            Settings.model_validate({field: 10**26})
        except ValidationError:
            continue
        taken.append(field)
    assert taken == []


@pytest.mark.parametrize("digits", [26, 5000], ids=["26-digits", "more-digits-than-python-reads"])
def test_absurd_times_are_refused_in_one_short_line_wherever_they_are_said(
    toml: Callable[[str], str], digits: int
) -> None:
    nines = "9" * digits
    said = [
        refusal(flags={"as_of_ms": nines}),
        refusal(env={"TXN_ANALYSIS_AS_OF_MS": nines}),
        refusal(toml(f'as_of_ms = "{nines}"')),
        refusal(toml(f"as_of_ms = {nines}")),
    ]
    assert [len(line) < 500 and "\n" not in line for line in said] == [True] * 4
    assert "--as-of is after 9999-12-31T23:59:59.999Z, got" in said[0]
    with pytest.raises(ValidationError):
        Settings(as_of_ms=10**digits)


def test_every_problem_is_said_at_once(toml: Callable[[str], str]) -> None:
    problems = refusal(toml("nope = 1\nrange_bytes = 0"), {"TXN_ANALYSIS_MAX_CLOCK_SKEW_MS": "x"}).splitlines()
    assert len(problems) == 3


def test_file_that_is_missing_or_not_toml(tmp_path: Path, toml: Callable[[str], str]) -> None:
    none = tmp_path / "none.toml"
    assert refusal(str(none)) == f"--config {none}: cannot be read: No such file or directory; check the path"
    assert "is not TOML" in refusal(toml("cluster = "))


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1763694900123", 1_763_694_900_123),
        ("2025-11-21T03:15:00Z", 1_763_694_900_000),
        ("2025-11-21T03:15:00", 1_763_694_900_000),
        ("2025-11-21T04:15:00.123+01:00", 1_763_694_900_123),
        (" 2025-11-21 ", 1_763_683_200_000),
    ],
)
def test_times_are_epoch_milliseconds_or_iso_in_utc(text: str, time_ms: int) -> None:
    assert parse_time(text) == time_ms
    assert load_settings(None, NOTHING, {"as_of_ms": text}).as_of_ms == time_ms


@pytest.mark.parametrize("text", ["", "noon", "-5", "1969-12-31", "12:30"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is n(either|ot)"):
        parse_time(text)


def test_settings_are_frozen_and_closed() -> None:
    with pytest.raises(ValidationError):
        Settings().cluster = "other"  # type: ignore[misc]  # the point of the test
    with pytest.raises(ValidationError):
        Settings.model_validate({"cluter": "x"})


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def test_what_a_setting_decides_of_a_run() -> None:
    """A run is named after these: a change here gives every capture a new run."""
    assert deciding(Decides.VERDICTS) == (
        "as_of_ms",
        "transaction_max_timeout_ms",
        "transaction_state_partitions",
        "transaction_state_complete",
        "state_copied_last",
        "max_clock_skew_ms",
        "transactional_id_expiration_ms",
        "plan_valid_ms",
    )
    assert deciding(Decides.MORE) == ("no_records_lost", "topic_config", "free_bytes")


def test_default_configuration_shows_every_setting_at_its_default(toml: Callable[[str], str]) -> None:
    lines = (CONF / "audit.toml").read_text(encoding="utf-8").splitlines()
    uncommented = "\n".join(line.removeprefix("# ") for line in lines if " = " in line)
    shown = tomllib.loads(uncommented)
    assert list(shown.keys() - Settings.model_fields.keys()) == []
    assert Settings.model_fields.keys() - shown.keys() == set()
    examples = {
        "capture",
        "topic",
        "partition",
        "transaction_state_partitions",
        "as_of_ms",
        "master",
        "topic_config",
        "free_bytes",
        "accepted",
        "keep_ms",
    }  # not set by default: the file shows an example
    defaults = Settings().model_dump(mode="json")
    assert {k: v for k, v in shown.items() if k not in examples} == {
        k: v for k, v in defaults.items() if k not in examples
    }
    load_settings(toml(uncommented), NOTHING, {})


def test_the_file_of_all_settings_is_made_of_them() -> None:
    assert (CONF / "audit.toml").read_text(encoding="utf-8") == config_file()


@pytest.mark.parametrize("file", ["audit.toml", "nightly.toml"])
def test_configurations_in_conf_are_valid(file: str) -> None:
    load_settings(str(CONF / file), NOTHING, {})
