"""A properties file of Kafka's own tools says how to connect; what is not understood is refused."""

import pytest

from txn_analysis.capture.command import client_config, read_properties
from txn_analysis.errors import ConfigError

SCRAM = """
# of the tools
security.protocol = SASL_PLAINTEXT
sasl.mechanism=SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="auditor" \\
    password="a\\\\"b";
default.api.timeout.ms=1000
"""


def test_scram_is_read_over_continued_lines_and_escapes() -> None:
    assert client_config(read_properties(SCRAM), "file") == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "auditor",
        "sasl_plain_password": 'a"b',
    }


def test_without_anything_it_is_plaintext() -> None:
    assert client_config({}, "file") == {"security_protocol": "PLAINTEXT"}


def test_an_empty_identification_algorithm_asks_for_no_host_name() -> None:
    context = client_config({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}, "file")
    assert context["ssl_context"].check_hostname is False


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"security.protocol": "TLS"}, "file: security.protocol=TLS: it is one of PLAINTEXT, SSL"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM"}, "file: sasl.mechanism=SCRAM: it is one of"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, 'file: sasl.jaas.config: username="…" and'),
        ({"security.protocol": "SSL", "ssl.truststore.location": "x.jks"}, "file: ssl.truststore: a JKS store is not"),
        (
            {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": "/no/such.pem"},
            "file: a certificate or key cannot be read",
        ),
        ({"secure.protocol": "SSL"}, "file: secure.protocol: not understood here"),
        ({"request.timeout.ms": "soon"}, "file: request.timeout.ms=soon: a number of milliseconds is wanted"),
    ],
)
def test_what_would_change_how_to_connect_is_refused(given: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        client_config(given, "file")
    assert str(refused.value).startswith(said)
