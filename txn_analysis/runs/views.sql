-- What questions see beside the tables, each of which is the rows of the run. `stored_…` are those of all runs, what a
-- killed audit left among them. Both engines read this file: no nested column is opened by words of one of them alone.

-- One row per ended transaction, with the id that the coordinator's records name for its producer, and times.
CREATE VIEW ended AS
SELECT concat(e.topic, '-', e.`partition`, '@', e.txn_start_offset) AS address,
       i.transactional_id,
       to_timestamp_millis(e.end_timestamp_ms) AS ended_at,
       e.*
FROM ended_transactions e LEFT JOIN ids i ON e.producer_id = i.producer_id;

-- One row per producer id that records of __transaction_state name, with its transactional id.
CREATE VIEW ids AS
SELECT producer_id, min(transactional_id) AS transactional_id
FROM (SELECT producer_id, transactional_id FROM transaction_states
      UNION SELECT previous_producer_id, transactional_id FROM transaction_states
      UNION SELECT next_producer_id, transactional_id FROM transaction_states) named
WHERE producer_id >= 0
GROUP BY producer_id;

-- One row per end that the coordinator decided, as far as its records are left, with the start by the same clock.
CREATE VIEW decided AS
SELECT DISTINCT transactional_id, producer_id, producer_epoch,
       CASE state WHEN 'PrepareCommit' THEN 'COMMIT' ELSE 'ABORT' END AS outcome,
       to_timestamp_millis(start_ms) AS started_at,
       to_timestamp_millis(last_update_ms) AS decided_at,
       last_update_ms - start_ms AS duration_ms
FROM transaction_states
WHERE state IN ('PrepareCommit', 'PrepareAbort');

-- One row per open transaction of the run, by its address, with times.
CREATE VIEW opened AS
SELECT concat(f.topic, '-', f.`partition`, '@', f.txn_start_offset) AS address,
       to_timestamp_millis(f.last_timestamp_ms) AS last_written_at,
       f.*
FROM findings f;

-- One row per open transaction and complete run of the cluster: what each night said of it.
CREATE VIEW all_findings AS
SELECT r.run_number, r.capture, to_timestamp_millis(r.as_of_ms) AS copied_at,
       concat(f.topic, '-', f.`partition`, '@', f.txn_start_offset) AS address,
       f.*
FROM stored_findings f JOIN all_runs r ON f.run_id = r.run_id;

-- One row per complete run of the cluster.
CREATE VIEW all_runs AS
SELECT * FROM stored_runs WHERE cluster IN (SELECT cluster FROM runs);
