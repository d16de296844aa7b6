"""What an audit costs where a cluster is wide: many partitions, transactional ids, open transactions and folders."""
