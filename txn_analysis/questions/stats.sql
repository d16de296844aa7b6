-- What `ended --by` counts, in this process. $wanted, $places and $bare are what is asked for. Rows that say when their
-- first batch was written are counted in one pass; of $parts parts of the others, so that each fits into memory, it is $part.

-- Wanted transactions whose rows do not say when their first batch was written: 1.0.0 wrote them, or it was not seen.
CREATE VIEW untimed AS
SELECT *
FROM ended_transactions
WHERE first_timestamp_ms IS NULL AND txn_start_offset % $parts = $part AND $wanted;

-- The earliest timestamp of a batch of each of their producers where they begin.
CREATE VIEW begun AS
SELECT b.topic, b.`partition`, b.producer_id, b.base_offset, min(b.max_timestamp_ms) AS first_ms
FROM untimed u RIGHT SEMI JOIN (SELECT * FROM log_batches WHERE $places) b
     ON b.topic = u.topic AND b.`partition` = u.`partition` AND b.producer_id = u.producer_id
        AND b.base_offset = u.txn_start_offset
GROUP BY b.topic, b.`partition`, b.producer_id, b.base_offset;

-- One row per wanted ended transaction, and the time from the timestamp of its first batch to its end marker.
CREATE VIEW took AS
SELECT *, end_timestamp_ms - first_timestamp_ms AS took_ms
FROM ended_transactions
WHERE first_timestamp_ms IS NOT NULL AND $part = 0 AND $wanted
UNION ALL
SELECT e.*, e.end_timestamp_ms - b.first_ms AS took_ms
FROM untimed e
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
SELECT count(*) FILTER (WHERE first_timestamp_ms IS NULL) AS untimed_count,
       min(end_timestamp_ms) AS first_ms, max(end_timestamp_ms) AS last_ms
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
