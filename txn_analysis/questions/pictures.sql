-- The series behind the pictures of a report. `shown` names the partitions to draw, each with its first offset and the
-- one behind its last; offsets are cut into $slices slices, each of which keeps one point, however long the log is.

-- One row per batch of what is drawn; a time of a broker's clock is a moment, one after the copy is not believed.
CREATE VIEW appends AS
SELECT s.*, b.base_offset, b.last_offset + 1 AS end_offset,
       CASE WHEN b.is_control OR b.timestamp_type = 'LogAppendTime' OR $is_brokers THEN b.max_timestamp_ms END
           AS moment_ms,
       CASE WHEN b.max_timestamp_ms BETWEEN 1 AND $as_of_ms THEN b.max_timestamp_ms END AS timestamp_ms,
       floor((b.last_offset - s.from_offset) / s.offset_count * $slices) AS slice
FROM (SELECT * FROM log_batches WHERE $places) b
JOIN shown s ON b.topic = s.topic AND b.`partition` = s.`partition`
WHERE b.last_offset >= s.from_offset AND b.base_offset < s.to_offset;

-- One row per slice that holds a batch: where the log ended in it, and the last times of its batches.
CREATE VIEW ends AS
SELECT topic, `partition`, least(slice, $slices - 1) AS slice, max(end_offset) AS end_offset,
       last_value(moment_ms ORDER BY base_offset, moment_ms) FILTER (WHERE moment_ms IS NOT NULL) AS moment_ms,
       last_value(timestamp_ms ORDER BY base_offset, timestamp_ms) FILTER (WHERE timestamp_ms IS NOT NULL)
           AS timestamp_ms
FROM appends
GROUP BY topic, `partition`, least(slice, $slices - 1);

-- One row per transaction of what is drawn, with the slices in which it begins and ends; an open one ends nowhere.
CREATE VIEW lasting AS
SELECT s.topic, s.`partition`, t.txn_start_offset, t.end_offset,
       greatest(floor((t.txn_start_offset - s.from_offset) / s.offset_count * $slices), 0) AS begins,
       least(floor((t.end_offset - s.from_offset) / s.offset_count * $slices), $slices - 1) AS ends
FROM (SELECT topic, `partition`, txn_start_offset, end_offset FROM ended_transactions WHERE $places
      UNION ALL
      SELECT topic, `partition`, txn_start_offset, NULL FROM transactions WHERE outcome = 'open' AND $places) t
JOIN shown s ON t.topic = s.topic AND t.`partition` = s.`partition`
WHERE t.txn_start_offset < s.to_offset AND (t.end_offset IS NULL OR t.end_offset >= s.from_offset);

-- Of the transactions that are open at the ends of the same slices, from `since` to `upto`, the smallest start.
CREATE VIEW held AS
SELECT t.topic, t.`partition`, min(t.txn_start_offset) AS txn_start_offset,
       CASE WHEN t.txn_start_offset < b.end_offset THEN begins ELSE begins + 1 END AS since,
       CASE WHEN t.end_offset IS NULL THEN $slices WHEN t.end_offset >= e.end_offset THEN ends ELSE ends - 1 END AS upto
FROM lasting t
LEFT JOIN ends b ON t.topic = b.topic AND t.`partition` = b.`partition` AND t.begins = b.slice
LEFT JOIN ends e ON t.topic = e.topic AND t.`partition` = e.`partition` AND t.ends = e.slice
GROUP BY t.topic, t.`partition`, since, upto;

-- One row per slice that holds a batch: where the log ended, when, and its last stable offset then.
CREATE VIEW log_points AS
SELECT e.topic, e.`partition`, e.end_offset, e.moment_ms, e.timestamp_ms,
       least(e.end_offset, coalesce(min(h.txn_start_offset), e.end_offset)) AS last_stable_offset
FROM ends e
LEFT JOIN held h ON e.topic = h.topic AND e.`partition` = h.`partition` AND e.slice BETWEEN h.since AND h.upto
GROUP BY e.topic, e.`partition`, e.end_offset, e.moment_ms, e.timestamp_ms;

-- The same by one clock, the brokers' where any speaks and else the clients'. Clocks of several leaders may disagree by
-- moments; a log never goes back in time.
CREATE VIEW timed_points AS
SELECT topic, `partition`, is_broker_time, time_ms, end_offset, last_stable_offset
FROM (SELECT *, max(time_ms) OVER (PARTITION BY topic, `partition` ORDER BY end_offset) AS latest_ms
      FROM (SELECT *, CASE WHEN is_broker_time THEN moment_ms ELSE timestamp_ms END AS time_ms
            FROM (SELECT *, bool_or(moment_ms IS NOT NULL) OVER (PARTITION BY topic, `partition`) AS is_broker_time
                  FROM log_points) p) p) p
WHERE time_ms = latest_ms;

-- One row per slice and outcome that has an end marker in what is drawn: the last of them, and how many there are.
CREATE VIEW markers AS
SELECT s.topic, s.`partition`, last_value(t.end_timestamp_ms ORDER BY t.end_offset) AS time_ms,
       max(t.end_offset) AS `offset`, t.outcome, count(*) AS marker_count
FROM (SELECT * FROM ended_transactions WHERE end_timestamp_ms IS NOT NULL AND $places) t
JOIN shown s ON t.topic = s.topic AND t.`partition` = s.`partition`
WHERE t.end_offset BETWEEN s.from_offset AND s.to_offset - 1
GROUP BY s.topic, s.`partition`, t.outcome, floor((t.end_offset - s.from_offset) / s.offset_count * $marker_slices);

-- The last run of each of the newest $most captures of the cluster, up to this run.
CREATE VIEW shown_runs AS
SELECT run_id, run_number, as_of_ms
FROM (SELECT *, row_number() OVER (PARTITION BY capture ORDER BY run_number DESC) AS age
      FROM all_runs WHERE run_number <= (SELECT max(run_number) FROM runs)) r
WHERE age = 1
ORDER BY as_of_ms DESC NULLS LAST, run_number DESC
LIMIT $most;

-- One row per run that is shown ($runs): what it found hidden, and how much hung.
CREATE VIEW run_points AS
SELECT r.run_id, r.run_number, r.as_of_ms, coalesce(h.hidden_record_count, 0) AS hidden_record_count,
       coalesce(h.unknown_count, 0) AS unknown_count, coalesce(f.hanging_count, 0) AS hanging_count
FROM shown_runs r
LEFT JOIN (SELECT run_id, sum(hidden_record_count) AS hidden_record_count,
                  count(*) - count(hidden_record_count) AS unknown_count
           FROM stored_partition_health WHERE $runs AND open_transaction_count > 0 GROUP BY run_id) h
     ON r.run_id = h.run_id
LEFT JOIN (SELECT run_id, count(*) AS hanging_count
           FROM stored_findings WHERE $runs AND verdict = 'hanging' GROUP BY run_id) f
     ON r.run_id = f.run_id;

-- One row per run that is shown, and partition of its capture that is drawn.
CREATE VIEW nights AS
SELECT h.topic, h.`partition`, r.run_number, r.as_of_ms, h.hidden_record_count, h.last_stable_offset
FROM (SELECT * FROM stored_partition_health WHERE $runs AND $places) h
JOIN shown_runs r ON r.run_id = h.run_id
WHERE h.is_in_capture;
