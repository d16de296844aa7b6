"""The command line `txn-capture`, and its `--command-config`: a properties file of Kafka's own tools.

One file serves `kafka-transactions.sh` and this program, in the words of the client library. Certificates are PEM:
Java's own stores are no format that Python reads.
"""

from __future__ import annotations

import re
import ssl
import sys
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from txn_analysis.capture.answers import Clock
from txn_analysis.capture.capturing import Wanted, capture, summary
from txn_analysis.errors import AuditError, ConfigError
from txn_analysis.text import escape

NOTHING_STUCK = 4
_FAILED, _INTERRUPTED = 2, 130

_NUMBER: dict[str, Any] = {"show_default": True, "metavar": "N", "type": click.IntRange(0)}


@click.command(
    "txn-capture",
    epilog="\b\nExample:\n  txn-capture --bootstrap-server kafka-1:9092 --to capture-1\n  txn-analysis audit capture-1",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option("--bootstrap-server", metavar="HOST:PORT", required=True, help="Brokers to begin with, comma-separated.")
@click.option("--to", metavar="DIR", type=Path, required=True, help="A new folder for the capture.")
@click.option(
    "--command-config",
    metavar="FILE",
    type=Path,
    help="How to connect: a properties file as Kafka's own tools take it.",
)
@click.option("--topic", metavar="TOPIC", multiple=True, help="Only this topic; given twice adds.")
@click.option("--all", "is_all", is_flag=True, help="Every partition from its log start on, stuck or not.")
@click.option(
    "--look-back-bytes",
    **_NUMBER,
    default=Wanted.look_back_bytes,
    help="What is fetched at most, in each partition, to find an earlier end marker.",
)
@click.option(
    "--max-clock-skew-ms",
    **_NUMBER,
    default=Wanted.max_clock_skew_ms,
    help="By how much the brokers' clocks differ at most.",
)
@click.option(
    "--give-up-after-ms",
    **_NUMBER,
    default=Wanted.give_up_after_ms,
    help="How long a broker that does not answer is asked again.",
)
@click.pass_context
def app(
    context: click.Context,
    /,
    *,
    bootstrap_server: str,
    to: Path,
    command_config: Path | None,
    topic: tuple[str, ...],
    is_all: bool,
    **more: int,
) -> None:
    """Capture what hides behind open transactions, over the network, for `txn-analysis audit`.

    Finds the partitions whose last stable offset lags, fetches from where the first open transaction begins to the end,
    and __transaction_state whole and last. It reads only. Exit codes: 0 captured, 2 not or not all of it, 4 nothing is
    stuck and nothing was written, 130 interrupted.
    """
    context.exit(_run(bootstrap_server, to, command_config, Wanted(topic, is_all, **more)))


def _run(bootstrap: str, to: Path, command_config: Path | None, wanted: Wanted) -> int:
    try:
        config = {} if command_config is None else _config(command_config)
        from txn_analysis.capture.client import KafkaBrokers  # noqa: PLC0415 the extra; --help needs none

        with KafkaBrokers(bootstrap, config, wanted.give_up_after_ms) as brokers:
            outcome = capture(brokers, to, wanted, Clock(), _say, f"txn-capture {version('txn-analysis')}")
    except AuditError as error:
        _say_failed([str(error)])
        return _FAILED
    except KeyboardInterrupt:
        _say("interrupted: what was captured so far is not complete, as its manifest says. Remove the folder")
        return _INTERRUPTED
    _say_failed(outcome.failures)
    if not outcome.captured:
        if outcome.failures:
            return _FAILED
        _say("nothing is stuck: no last stable offset lags, and nothing was written. --all captures all the same")
        return NOTHING_STUCK
    print(summary(outcome, to), end="")
    return 0 if outcome.is_complete else _FAILED


def _config(path: Path) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AuditError(f"{path}: the file cannot be read: {error}. Check the path") from error
    return client_config(read_properties(text), str(path))


def _say(line: str) -> None:
    print(escape(line), file=sys.stderr, flush=True)


def _say_failed(problems: list[str]) -> None:
    for problem in problems:
        _say(f"error: {problem}")


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    app(prog_name="txn-capture")


_LINE = re.compile(r"\s*((?:\\.|[^=:\s\\])+)\s*[=:\s]\s*(.*)", re.DOTALL)
_JAAS_OPTION = re.compile(r'(\w+)\s*=\s*"((?:\\.|[^"\\])*)"')
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "AWS_MSK_IAM")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_TO_PEM = "Change it to PEM: keytool -exportcert -rfc (certificates), openssl pkcs12 -nodes (keys)"
# They tune Kafka's tools, and say nothing about how to connect.
_OF_NO_CONCERN = re.compile(
    r"(?:key|value)\.(?:de)?serializer|group\.id|acks|retries|default\.api\.timeout\.ms|.*\.(?:backoff|buffer|idle|age)\..*"
    r"|bootstrap\.servers|enable\.auto\.commit|sasl\.(?:client\.callback\.handler|login)\..*|ssl\.(?:protocol|enabled\.protocols)"
)


def read_properties(text: str) -> dict[str, str]:
    """A file of Java properties: comments, continued lines and escapes (`java.util.Properties.load`)."""
    properties: dict[str, str] = {}
    for line in re.sub(r"(?<!\\)((?:\\\\)*)\\\n\s*", r"\1", text.replace("\r\n", "\n")).splitlines():
        if not line.strip() or line.lstrip()[0] in "#!":
            continue
        matched = _LINE.fullmatch(line)
        name, value = (matched[1], matched[2]) if matched else (line.strip(), "")
        properties[_unescaped(name)] = _unescaped(value).rstrip()
    return properties


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def _unescaped(text: str) -> str:
    def char(escape: re.Match[str]) -> str:
        word = escape[1]
        return chr(int(word[1:], 16)) if len(word) > 1 else _ESCAPES.get(word, word)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", char, text)


def client_config(properties: Mapping[str, str], where: str) -> dict[str, Any]:
    """The client's options.

    Args:
        properties: of the file.
        where: its name, for what is said of it.

    Raises:
        ConfigError: an option that would change how to connect is not understood.
    """
    left = dict(properties)
    protocol = left.pop("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise ConfigError(f"{where}: security.protocol={protocol}: it is one of {', '.join(_PROTOCOLS)}")
    config: dict[str, Any] = {"security_protocol": protocol}
    if "client.id" in left:
        config["client_id"] = left.pop("client.id")
    if "request.timeout.ms" in left:
        config["request_timeout_ms"] = _number("request.timeout.ms", left.pop("request.timeout.ms"), where)
    is_sasl, is_tls = protocol.startswith("SASL"), protocol.endswith("SSL")
    config |= _sasl(left, where) if is_sasl else {}
    config |= _tls(left, where) if is_tls else {}
    unknown = sorted(
        name
        for name in left
        if not _OF_NO_CONCERN.fullmatch(name)
        and not (name.startswith("sasl.") and not is_sasl)
        and not (name.startswith("ssl.") and not is_tls)
    )
    if unknown:
        raise ConfigError(f"{where}: {', '.join(unknown)}: not understood here. Take it out, or see docs/capture.md")
    return config


def _number(name: str, value: str, where: str) -> int:
    if not re.fullmatch(r"\d{1,9}", value):
        raise ConfigError(f"{where}: {name}={value}: a number of milliseconds is wanted")
    return int(value)


def _sasl(left: dict[str, str], where: str) -> dict[str, Any]:
    mechanism = left.pop("sasl.mechanism", "GSSAPI").upper()  # Kafka's default
    if mechanism not in _MECHANISMS:
        raise ConfigError(f"{where}: sasl.mechanism={mechanism}: it is one of {', '.join(_MECHANISMS)}")
    options = dict(_JAAS_OPTION.findall(left.pop("sasl.jaas.config", "")))
    config: dict[str, Any] = {"sasl_mechanism": mechanism}
    if mechanism == "GSSAPI":
        service = left.pop("sasl.kerberos.service.name", options.get("serviceName"))
        return config | ({} if service is None else {"sasl_kerberos_service_name": service})
    if mechanism == "AWS_MSK_IAM":
        return config
    if not {"username", "password"} <= options.keys():
        raise ConfigError(f'{where}: sasl.jaas.config: username="…" and password="…" are wanted for {mechanism}')
    names = {"sasl_plain_username": options["username"], "sasl_plain_password": options["password"]}
    return config | {name: re.sub(r"\\(.)", r"\1", value) for name, value in names.items()}


def _tls(left: dict[str, str], where: str) -> dict[str, Any]:
    for store in ("truststore", "keystore"):
        kind = left.pop(f"ssl.{store}.type", None)
        is_given = f"ssl.{store}.location" in left
        if (kind is not None and kind.upper() != "PEM") or (is_given and kind is None):
            raise ConfigError(f"{where}: ssl.{store}: a {kind or 'JKS'} store is not read here. {_TO_PEM}")
    left.pop("ssl.truststore.password", None)
    left.pop("ssl.keystore.password", None)
    context = ssl.create_default_context()
    context.check_hostname = left.pop("ssl.endpoint.identification.algorithm", "https") != ""
    password = left.pop("ssl.key.password", None)
    try:
        trusted = _pem(left, "ssl.truststore.location", "ssl.truststore.certificates")
        if trusted is not None:
            context = ssl.create_default_context(cadata=trusted) if context.check_hostname else _unnamed(trusted)
        certificate = _pem(left, "ssl.keystore.location", "ssl.keystore.certificate.chain")
        if certificate is not None:
            _load_own(context, certificate + "\n" + left.pop("ssl.keystore.key", ""), password)
    except (OSError, ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{where}: a certificate or key cannot be read: {error}. {_TO_PEM}") from error
    return {"ssl_context": context}


def _unnamed(trusted: str) -> ssl.SSLContext:
    """A context that trusts some certificates, whatever host shows them."""
    context = ssl.create_default_context(cadata=trusted)
    context.check_hostname = False
    return context


def _pem(left: dict[str, str], location: str, inline: str) -> str | None:
    if inline in left:
        return left.pop(inline)
    return Path(left.pop(location)).read_text(encoding="ascii") if location in left else None


def _load_own(context: ssl.SSLContext, text: str, password: str | None) -> None:
    """Show a certificate; the library of Python reads it from a file alone."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="ascii") as file:
        file.write(text)
        file.flush()
        context.load_cert_chain(file.name, password=password)
