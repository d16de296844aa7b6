"""The topics that brokers write themselves."""

STATE_TOPIC, GROUP_TOPIC = "__transaction_state", "__consumer_offsets"
DECODED_TOPICS = frozenset({STATE_TOPIC, GROUP_TOPIC})  # brokers write their records, the tool decodes them
# Every timestamp in their batches is a broker's.
BROKER_WRITTEN_TOPICS = (GROUP_TOPIC, STATE_TOPIC)
