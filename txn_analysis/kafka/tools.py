"""Kafka's own tools as printed commands call them: with the brokers' addresses in one variable of the shell."""

_BROKERS = '--bootstrap-server "$BROKERS"'

TRANSACTIONS = f"kafka-transactions.sh {_BROKERS}"
TOPIC_CONFIGS = f"kafka-configs.sh {_BROKERS} --describe --all --entity-type topics"
STATE_TOPIC_DESCRIPTION = f"kafka-topics.sh {_BROKERS} --describe --topic __transaction_state"
