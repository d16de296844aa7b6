"""One spelling of a transaction, and of an offset."""

import shlex

import pytest

from txn_analysis.kafka.address import Address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("orders-0@161", Address("orders", 0, 161)),
        ("orders-0:205", Address("orders", 0, 205, is_transaction=False)),
        ("eu.orders-v2-11@9223372036854775807", Address("eu.orders-v2", 11, 9223372036854775807)),
    ],
)
def test_an_address_is_read_as_it_is_printed(text: str, address: Address) -> None:
    assert Address.of(text) == address
    assert str(address) == address.words == text


@pytest.mark.parametrize(
    "text", ["", "orders", "orders-0", "orders@1", "orders-0@", "orders-0@-1", "orders-0@1@2", "a-0@x"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        Address.of(text)


@pytest.mark.parametrize("text", ["orders-2147483648@1", "orders-0@9223372036854775808", "orders-٣@1"])
def test_no_number_that_kafka_cannot_have(text: str) -> None:
    with pytest.raises(ValueError, match="is no address"):
        Address.of(text)


def test_a_topic_that_looks_like_an_option_is_named_by_options() -> None:
    assert shlex.split(Address("-rf", 0, 7).words) == ["--topic=-rf", "--partition", "0", "--start-offset", "7"]
