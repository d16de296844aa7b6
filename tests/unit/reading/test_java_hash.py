import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.forms import model
from txn_analysis.kafka.names import java_hash, state_partition


@pytest.mark.parametrize(
    ("text", "hashed"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),  # the known word whose hash is the smallest integer
        ("\U0001f600", 31 * 0xD83D + 0xDE00),  # two UTF-16 code units
    ],
)
def test_hash_is_that_of_java(text: str, hashed: int) -> None:
    assert java_hash(text) == hashed


@pytest.mark.parametrize(
    ("hashed", "partition"), [(-(2**31), 0), (-1, 1), (-7, 2), (7, 2), (2**31 - 1, (2**31 - 1) % 5), (0, 0)]
)
def test_partition_of_a_negative_hash_is_that_of_its_absolute_value(hashed: int, partition: int) -> None:
    assert state_partition(hashed, 5) == partition


@given(st.text(), st.integers(1, 100))
def test_agrees_with_the_oracle(text: str, partitions: int) -> None:
    assert java_hash(text) == model.java_hash(text)
    assert state_partition(java_hash(text), partitions) == model.state_partition(text, partitions)
