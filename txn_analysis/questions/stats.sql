-- What `ended --by` counts, in this process. $wanted, $places and $bare are what is asked for; of $parts parts, into
-- which offsets are dealt so that each fits into memory, it is $part.

-- The earliest timestamp of a batch of each producer at each offset.
CREATE VIEW begun AS
SELECT topic, `partition`, producer_id, base_offset, min(max_timestamp_ms) AS first_ms
FROM log_batches
WHERE base_offset % $parts = $part AND $places
GROUP BY topic, `partition`, producer_id, base_offset;

-- One row per wanted ended transaction, and the time from the timestamp of its first batch to its end marker.
CREATE VIEW took AS
SELECT e.*, e.end_timestamp_ms - b.first_ms AS took_ms
FROM (SELECT * FROM ended_transactions WHERE txn_start_offset % $parts = $part AND $wanted) e
LEFT JOIN begun b ON e.topic = b.topic AND e.`partition` = b.`partition` AND e.producer_id = b.producer_id
                 AND e.txn_start_offset = b.base_offset;

-- Of each producer on each topic, what its transactions did.
CREATE VIEW did AS
SELECT topic, producer_id,
       count(*) FILTER (WHERE outcome = 'COMMIT') AS committed_count,
       count(*) FILTER (WHERE outcome = 'ABORT') AS aborted_count,
       count(*) FILTER (WHERE outcome = 'ended') AS unknown_outcome_count,
       count(*) FILTER (WHERE NOT is_txn_start_exact) AS start_unseen_count,
       count(*) FILTER (WHERE took_ms < 0) AS backwards_count,
       count(record_count) AS sized_count,
       sum(record_count) AS record_count,
       max(record_count) AS max_record_count,
       sum(size_bytes) AS size_bytes,
       max(size_bytes) AS max_size_bytes,
       count(*) FILTER (WHERE took_ms >= 0) AS timed_count,
       sum(took_ms) FILTER (WHERE took_ms >= 0) AS duration_sum_ms,
       min(took_ms) FILTER (WHERE took_ms >= 0) AS min_duration_ms,
       max(took_ms) FILTER (WHERE took_ms >= 0) AS max_duration_ms
FROM took
GROUP BY topic, producer_id;

CREATE VIEW longest AS
SELECT topic, `partition`, txn_start_offset, end_offset, outcome, end_timestamp_ms, producer_id, took_ms AS duration_ms
FROM took
WHERE took_ms >= 0
ORDER BY took_ms DESC, topic, `partition`, txn_start_offset
LIMIT $most;

-- End markers without data of their producer before them.
CREATE VIEW bare AS
SELECT topic, producer_id, count(*) AS empty_count, count(*) FILTER (WHERE marker = 'COMMIT') AS empty_commit_count
FROM (SELECT topic, m['producer_id'] AS producer_id, m['marker'] AS marker, m['timestamp_ms'] AS end_timestamp_ms
      FROM (SELECT topic, unnest(bare_markers) AS m FROM partition_health WHERE $places) of_partitions) markers
WHERE $bare
GROUP BY topic, producer_id;

-- What is open at the end of the logs, whenever it began.
CREATE VIEW still AS
SELECT topic, producer_id, count(*) AS open_count FROM transactions WHERE $opened GROUP BY topic, producer_id;

CREATE VIEW bounds AS
SELECT count(*) AS ended_count, min(end_timestamp_ms) AS first_ms, max(end_timestamp_ms) AS last_ms
FROM ended_transactions
WHERE $wanted;

-- How many ended when, in slices of one length.
CREATE VIEW slices AS
SELECT (end_timestamp_ms - $first_ms) / $step_ms AS slice,
       count(*) FILTER (WHERE outcome = 'COMMIT') AS committed_count,
       count(*) FILTER (WHERE outcome = 'ABORT') AS aborted_count,
       count(*) FILTER (WHERE outcome = 'ended') AS unknown_outcome_count
FROM ended_transactions
WHERE end_timestamp_ms IS NOT NULL AND $wanted
GROUP BY slice;
