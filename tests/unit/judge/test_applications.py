"""Whose a transactional id is, by its shape, and what is remarked where its owner may come back to commit."""

import pytest

from txn_analysis.judge.applications import (
    Application,
    ConnectGroups,
    application_of,
    blocked_start,
    framework_of,
    groups_led,
    remark_on,
    stopping,
    with_topics,
)

UUID = "8a4f3c1e-0b9d-4f7a-9c53-2f1f0c6d7e11"


@pytest.mark.parametrize(
    ("transactional_id", "application", "framework"),
    [
        (f"payments-app-{UUID}-3", "payments-app", "Kafka Streams"),
        ("payments-app-0_12", "payments-app", "Kafka Streams"),
        ("orders-sink-4-1700", "orders-sink", "Flink"),
        ("connect-cluster-prod", "connect-cluster-prod", "Kafka Connect"),
        ("connect-cluster-files-0", "connect-cluster-files", "Kafka Connect"),
        ("connect-prod-jdbc-source-0", "connect-prod-jdbc-source", "Kafka Connect"),
        ("tx-billing.orders.7", "tx-billing", "Spring"),
        ("billing-tx-12", "billing-tx-", "Spring"),
        ("billing-worker-17", "billing-worker", None),
        ("ledger-writer", "ledger-writer", None),
        ("evil\n<b>-1-2", "evil\n<b>", "Flink"),
    ],
)
def test_shapes(transactional_id: str, application: str, framework: str | None) -> None:
    assert application_of(transactional_id) == Application(application, framework)


@pytest.mark.parametrize(
    ("transactional_id", "parts"),
    [
        (f"payments-app-{UUID}-3", {"process": UUID, "thread": "3"}),
        (f"payments-app-{UUID}", {"process": UUID}),
        ("payments-app-0_12", {"task": "0_12"}),
        ("orders-sink-4-1700", {"subtask": "4", "number": "1700"}),
        ("connect-cluster-prod", {"group": "prod"}),
        ("connect-cluster-files-0", {"group": "connect-cluster", "connector": "files", "task": "0"}),
        ("connect-prod-jdbc-source-0", {"task": "0"}),
        ("tx-billing.orders.7", {"topic": "orders", "partition": "7"}),
        ("billing-tx-12", {"number": "12"}),
        ("billing-worker-17", {}),
    ],
)
def test_parts_behind_the_application(transactional_id: str, parts: dict[str, str]) -> None:
    assert framework_of(transactional_id)[1] == parts


GROUPS = ConnectGroups(names=frozenset({"etl", "etl-eu", "files-0", "connect-cluster"}))


@pytest.mark.parametrize(
    ("transactional_id", "application", "parts"),
    [
        ("etl-orders-0", "etl-orders", {"group": "etl", "connector": "orders", "task": "0"}),
        ("etl-eu-orders-1", "etl-eu-orders", {"group": "etl-eu", "connector": "orders", "task": "1"}),
        (
            "connect-cluster-files-1",
            "connect-cluster-files",
            {"group": "connect-cluster", "connector": "files", "task": "1"},
        ),
        ("connect-cluster-etl", "connect-cluster-etl", {"group": "etl"}),
        ("connect-cluster-files-0", "connect-cluster-files-0", {"group": "files-0"}),
    ],
)
def test_a_group_of_connect_that_the_state_names_has_its_tasks_and_its_leader(
    transactional_id: str, application: str, parts: dict[str, str]
) -> None:
    assert application_of(transactional_id, GROUPS) == Application(application, "Kafka Connect")
    assert framework_of(transactional_id, GROUPS)[1] == parts


def test_a_name_like_flinks_is_connects_only_where_it_writes_what_tasks_of_the_group_write() -> None:
    assert application_of("etl-sink-0-6", GROUPS) == Application("etl-sink", "Flink")
    assert application_of("etl-sink-0-6", GROUPS._replace(tasks=frozenset({"etl-sink-0-6"}))) == Application(
        "etl-sink-0", "Kafka Connect"
    )


def test_a_name_of_no_group_stays_the_applications_choice() -> None:
    assert application_of("billing-worker-0", GROUPS) == Application("billing-worker", None)


@pytest.mark.parametrize(
    ("transactional_id", "what"),
    [
        (f"payments-app-{UUID}-3", f"the instance of application payments-app with process id {UUID}"),
        ("payments-app-0_12", "the instance of application payments-app that runs task 0_12"),
        ("orders-sink-4-1700", "the Flink job whose sink has the prefix orders-sink, with a savepoint"),
        ("etl-orders-0", "the connector orders of group etl"),
        ("connect-cluster-etl", "the worker that leads group etl"),
        ("connect-prod-jdbc-source-0", "the connector whose task has the id"),
        ("tx-billing.orders.7", "the instance of the application with transaction-id-prefix tx-billing"),
        ("ledger-writer", "the program whose transactional.id it is"),
    ],
)
def test_what_is_stopped_is_no_more_than_the_ids_owner(transactional_id: str, what: str) -> None:
    assert stopping(transactional_id, GROUPS).stop.startswith(what)


def test_groups_are_those_of_leaders_and_not_tasks_of_the_default_group() -> None:
    ids = ["connect-cluster-etl", "connect-cluster-files-0", "connect-cluster-connect-cluster", "etl-orders-0"]
    assert groups_led(ids) == ["connect-cluster", "etl"]


@pytest.mark.parametrize(
    ("transactional_id", "topic", "what"),
    [
        ("etl-orders-0", "etl-offsets", "every worker of Connect group etl"),
        ("connect-cluster-etl", "etl-configs", "every worker of Connect group etl"),
        (
            f"wordcount-{UUID}-1",
            "wordcount-counts-store-changelog",
            "the tasks of Streams application wordcount",
        ),
    ],
)
def test_a_hang_in_an_internal_topic_stops_the_start_of_its_framework(
    transactional_id: str, topic: str, what: str
) -> None:
    assert (blocked_start(transactional_id, topic, GROUPS) or "").startswith(what)


@pytest.mark.parametrize(
    ("transactional_id", "topic"),
    [
        ("etl-orders-0", "orders"),
        ("billing-1", "billing-offsets"),
        ("etl-orders-0", "__consumer_offsets"),
        (f"wordcount-{UUID}-1", "others-counts-store-changelog"),
        (None, "wordcount-counts-store-changelog"),
    ],
)
def test_what_is_no_internal_topic_of_its_owner_stops_nobodys_start(transactional_id: str | None, topic: str) -> None:
    assert blocked_start(transactional_id, topic, GROUPS) is None


def test_braces_in_an_id_are_no_places_to_fill() -> None:
    assert stopping("{0}{process}-1-2").stop == "the Flink job whose sink has the prefix {0}{process}, with a savepoint"


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms", "begins"),
    [
        ("orders-sink-4-1700", 60_000, "its transactional id is shaped like Flink's: "),
        ("orders-sink-4-1700", 2**31 - 1, "its transactions never time out, as those of two-phase commits (KIP-939): "),
        ("billing-worker-17", 2**31 - 1, "its transactions never time out, as those of two-phase commits (KIP-939): "),
    ],
)
def test_an_owner_that_comes_back_to_commit_is_remarked(transactional_id: str, timeout_ms: int, begins: str) -> None:
    remark = remark_on(transactional_id, timeout_ms)
    assert remark is not None
    assert remark.startswith(begins)
    assert "reaches only what the coordinator's transaction lists" in remark


@pytest.mark.parametrize(
    ("transactional_id", "timeout_ms"), [("billing-worker-17", 2**31 - 2), ("orders-0_12", None), (None, None)]
)
def test_other_ids_need_no_remark(transactional_id: str | None, timeout_ms: int | None) -> None:
    assert remark_on(transactional_id, timeout_ms) is None


def test_a_long_id_is_read_in_no_time() -> None:
    assert application_of("-1" * 16_000 + "x").framework is None
    assert application_of("-" * 32_000, GROUPS).framework is None


@pytest.mark.parametrize(
    ("topics", "offsets"),
    [
        ({"etl-orders-0": {"orders", "o"}, "etl-pay-0": {"pay", "o"}}, {("etl", "o")}),
        ({"etl-orders-0": {"all", "etl-offsets"}, "etl-pay-0": {"all", "etl-offsets"}}, {("etl", "etl-offsets")}),
        ({"etl-orders-0": {"all", "o"}, "etl-pay-0": {"all", "o"}}, set()),
        ({"etl-orders-0": {"orders", "o"}, "etl-orders-1": {"o"}}, set()),
        ({"etl-orders-0": {"orders"}, "etl-pay-0": {"pay"}}, set()),
    ],
    ids=["one topic", "by its name", "two topics", "one connector", "none"],
)
def test_a_topic_of_offsets_is_what_the_tasks_of_several_connectors_write(
    topics: dict[str, set[str]], offsets: set[tuple[str, str]]
) -> None:
    assert with_topics(GROUPS.names, topics).offsets == offsets


def test_where_the_topic_of_offsets_is_known_another_of_such_a_name_stops_nobody() -> None:
    groups = GROUPS._replace(offsets=frozenset({("etl", "etl-positions")}))
    assert blocked_start("etl-orders-0", "etl-positions", groups) == (
        "every worker of Connect group etl, which reads this topic of offsets to its end"
    )
    assert blocked_start("etl-orders-0", "offset-reports", groups) is None
