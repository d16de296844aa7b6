-- One row per producer at the end of a partition's log, as the brokers would describe it.
CREATE VIEW last_producers AS
SELECT topic, `partition`, p['producer_id'] AS producer_id, p['producer_epoch'] AS producer_epoch,
       p['coordinator_epoch'] AS coordinator_epoch, p['last_sequence'] AS last_sequence,
       p['last_timestamp_ms'] AS last_timestamp_ms, p['txn_start_offset'] AS txn_start_offset
FROM (SELECT topic, `partition`, unnest(producers) AS p FROM partition_health) at_the_ends;
