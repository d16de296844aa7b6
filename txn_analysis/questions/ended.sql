-- What `ended` asks, in this process. $wanted is what is asked of ended transactions, $whose of transactional ids, and
-- $own of the producers that have, or had, such an id; $stored are the columns of an ended transaction.

-- One row per transactional id and producer id that any record of it names.
CREATE VIEW pairs AS
SELECT DISTINCT transactional_id, producer_id
FROM (SELECT transactional_id, unnest([producer_id, previous_producer_id, next_producer_id]) AS producer_id
      FROM transaction_states WHERE transactional_id IS NOT NULL) records
WHERE producer_id IS NOT NULL;

-- One row per producer id: the first by name of its ids, the first moment of any record of them, and how many there are.
CREATE VIEW producers AS
SELECT n.producer_id, min(n.transactional_id) AS transactional_id, min(r.first_ms) AS first_ms,
       sum(r.record_count) AS state_record_count
FROM pairs n
JOIN (SELECT transactional_id, min(least(recorded_ms, last_update_ms)) AS first_ms, count(*) AS record_count
      FROM transaction_states WHERE transactional_id IS NOT NULL GROUP BY transactional_id) r
     ON n.transactional_id = r.transactional_id
GROUP BY n.producer_id;

CREATE VIEW wanted AS
SELECT * FROM ended_transactions WHERE $wanted;

-- One row per wanted transaction, and whether its ids have records old enough to explain its end (`judge.endings`). Of a
-- join the left side is held in memory.
CREATE VIEW dated AS
SELECT e.*, p.transactional_id, p.state_record_count,
       coalesce(e.end_timestamp_ms >= p.first_ms - $explains_ms, FALSE) AS has_records
FROM producers p
RIGHT JOIN wanted e ON e.producer_id = p.producer_id;

CREATE VIEW with_records AS
SELECT $stored, state_record_count FROM dated WHERE has_records AND $own;

CREATE VIEW without_records AS
SELECT * FROM dated WHERE NOT has_records AND $whose;

-- One row per producer whose ends records may explain: how many there are, and how many records.
CREATE VIEW sizes AS
SELECT producer_id, count(*) AS ended_count, min(state_record_count) AS state_record_count
FROM with_records
GROUP BY producer_id;

-- How many rows the view $of has, and the time of the last of the newest $limit; NULL where it has none.
CREATE VIEW reach AS
SELECT (SELECT count(*) FROM $of) AS number,
       CASE WHEN count(end_timestamp_ms) = $limit THEN min(end_timestamp_ms) END AS since_ms
FROM (SELECT end_timestamp_ms FROM $of ORDER BY end_timestamp_ms DESC NULLS LAST LIMIT $limit) times;

-- Its newest $limit rows, each with how many records of the coordinator its producer's ids have. Sorting holds whole
-- batches, so that only those are sorted that are no older than the last of them.
CREATE VIEW newest AS
SELECT n.*, p.state_record_count
FROM producers p
RIGHT JOIN (SELECT $stored FROM $of WHERE end_timestamp_ms >= $since_ms OR $since_ms IS NULL
            ORDER BY end_timestamp_ms DESC NULLS LAST, topic, `partition`, end_offset DESC LIMIT $limit) n
     ON n.producer_id = p.producer_id;

-- What `ended --by` counts. Rows that say when their first batch was written are counted in one pass; of $parts parts of
-- the others, so that each fits into memory, it is $part.
CREATE VIEW counted AS
SELECT * FROM wanted WHERE $own;

-- Wanted transactions whose rows do not say when their first batch was written: 1.0.0 wrote them, or it was not seen.
CREATE VIEW untimed AS
SELECT * FROM counted WHERE first_timestamp_ms IS NULL AND txn_start_offset % $parts = $part;

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
FROM counted
WHERE first_timestamp_ms IS NOT NULL AND $part = 0
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
SELECT l.topic, l.`partition`, l.txn_start_offset, l.end_offset, l.outcome, l.end_timestamp_ms, l.producer_id,
       i.transactional_id, l.took_ms AS duration_ms
FROM ids i
RIGHT JOIN (SELECT * FROM took WHERE took_ms >= 0
            ORDER BY took_ms DESC, topic, `partition`, txn_start_offset LIMIT $most) l
     ON l.producer_id = i.producer_id;

-- End markers without data of their producer before them.
CREATE VIEW bare AS
SELECT topic, producer_id, count(*) AS empty_count, count(*) FILTER (WHERE marker = 'COMMIT') AS empty_commit_count
FROM (SELECT topic, `partition`, m['producer_id'] AS producer_id, m['marker'] AS marker,
             m['timestamp_ms'] AS end_timestamp_ms
      FROM (SELECT topic, `partition`, unnest(bare_markers) AS m FROM partition_health) of_partitions) markers
WHERE $rows AND $own AND $window
GROUP BY topic, producer_id;

-- What is open at the end of the logs, whenever it began.
CREATE VIEW still AS
SELECT topic, producer_id, count(*) AS open_count FROM transactions WHERE $rows AND $own GROUP BY topic, producer_id;

CREATE VIEW bounds AS
SELECT count(*) FILTER (WHERE first_timestamp_ms IS NULL) AS untimed_count,
       min(end_timestamp_ms) AS first_ms, max(end_timestamp_ms) AS last_ms
FROM counted;

-- How many ended when, in slices of one length.
CREATE VIEW slices AS
SELECT (end_timestamp_ms - $first_ms) / $step_ms AS slice,
       count(*) FILTER (WHERE outcome = 'COMMIT') AS committed_count,
       count(*) FILTER (WHERE outcome = 'ABORT') AS aborted_count,
       count(*) FILTER (WHERE outcome = 'ended') AS unknown_outcome_count
FROM counted
WHERE end_timestamp_ms IS NOT NULL
GROUP BY slice;
