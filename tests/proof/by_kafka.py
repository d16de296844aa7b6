"""The parts in which Kafka itself is the judge."""

from collections.abc import Iterator

from tests.proof.kafka.log.compare import FORGOTTEN, LIVING, LOADED
from tests.proof.kafka.log.program import VERSIONS
from tests.proof.kafka.log.report import KafkaLogReport, random_stories, report_of
from tests.proof.kafka.log.scenarios import SCENARIOS
from tests.proof.kafka.requests.report import RequestsReport, version_report
from tests.proof.part import Figure, Found, none_of
from tests.tools.kafka_jars import VERSIONS as BROKER_VERSIONS
from tests.tools.maven_jars import FetchError

_FEW_REQUESTS = 1000


def kafka_log(logs: int, seed: int) -> Found:
    """Of the files that Kafka's own log code leaves, the audit says what that code says of its log."""
    stories = [*SCENARIOS, *random_stories(logs, seed)]
    reports = {}
    for version in VERSIONS:
        try:
            reports[version] = report_of(version, stories)
        except FetchError as error:
            return Found((Figure("logs tried (Kafka's jars are not to be had here)", 0),), [str(error)])
    figures = [figure for version, report in reports.items() for figure in _of_log_code(version, report)]
    return Found(figures, [difference for report in reports.values() for difference in report.differences])


def _of_log_code(version: str, report: KafkaLogReport) -> Iterator[Figure]:
    yield Figure(f"logs of Kafka {version}", report.logs)
    if report.failed:
        yield Figure(f"stories at which the code of {version} itself fails", report.failed)
    yield Figure(f"requests that {version} carried out", report.requests)
    yield Figure(f"transactions that {version} left open", report.opened, least=1)
    for way in (LIVING, LOADED, FORGOTTEN):
        yield Figure(f"producers of {version} {way}", report.alike[way])
    yield none_of(f"differences from {version}", len(report.differences))


def kafka_requests(requests: int, seed: int) -> Found:
    """Of the files of brokers that get random requests, the audit says what these brokers say."""
    reports = {}
    for version in BROKER_VERSIONS if requests > _FEW_REQUESTS else BROKER_VERSIONS[-1:]:
        try:
            reports[version] = version_report(version, requests, seed)
        except FetchError as error:
            return Found((Figure("requests tried (Kafka's jars are not to be had here)", 0),), [str(error)])
    figures = [figure for version, report in reports.items() for figure in _of_broker(version, report)]
    return Found(figures, [difference for report in reports.values() for difference in report.differences])


def _of_broker(version: str, report: RequestsReport) -> Iterator[Figure]:
    yield Figure(f"requests to brokers of Kafka {version}", report.requests)
    yield Figure(f"of these by librdkafka, to {version}", report.by_librdkafka)
    yield Figure(f"of these refused by {version}", report.refused)
    yield Figure(f"times that {version} was asked and its files audited", report.checkpoints)
    yield Figure(f"producers compared with {version}", report.producers)
    yield Figure(f"producers of which the cleaner of {version} took what the broker still knows", report.cleaned)
    yield Figure(f"open transactions among them, {version}", report.opened, least=1)
    yield Figure(f"transactional ids compared with {version}", report.ids)
    yield none_of(f"differences from brokers of {version}", len(report.differences))
