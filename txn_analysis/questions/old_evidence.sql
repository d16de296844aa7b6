-- Which old captures hold what the coordinator said of what is open, and no newer one does. `nights` has the captures
-- of the cluster, each with its age: 0 of one that stays in any case, then from 1 on, the newest first.

-- One row per capture and record of the coordinator that bears on what is open. A record whose partition is not known
-- is the same in its own content alone; those of an export are what they say.
CREATE VIEW bearing AS
SELECT n.capture, n.age, s.`offset`,
       CASE WHEN s.`offset` IS NOT NULL THEN coalesce(cast(s.state_partition AS VARCHAR), s.input_id) END AS place,
       CASE WHEN s.`offset` IS NULL THEN s.transactional_id END AS transactional_id,
       CASE WHEN s.`offset` IS NULL THEN s.producer_id END AS producer_id,
       CASE WHEN s.`offset` IS NULL THEN s.state END AS state,
       CASE WHEN s.`offset` IS NULL THEN s.last_update_ms END AS last_update_ms
FROM (SELECT *, coalesce(greatest(recorded_ms, last_update_ms) >= $since_ms, TRUE) AS may_be_of_it
      FROM stored_transaction_states WHERE $ingests) s
JOIN stored_inputs i ON s.ingest_id = i.ingest_id AND s.input_id = i.input_id
JOIN nights n ON i.capture = n.capture
WHERE i.cluster IN (SELECT cluster FROM runs) AND (may_be_of_it OR s.is_undecodable OR $is_open);

CREATE VIEW needed AS
SELECT DISTINCT n.capture
FROM (SELECT min(age) AS age FROM bearing
      GROUP BY `offset`, place, transactional_id, producer_id, state, last_update_ms) newest
JOIN nights n ON newest.age = n.age
WHERE newest.age > 0;
