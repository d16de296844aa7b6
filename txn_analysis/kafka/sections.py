"""Sections: what a broker's file, or a part of a dump, holds; kinds and grammars as the table `inputs` names them."""

from __future__ import annotations

LOG, STATE, SNAPSHOT, TXNINDEX = "log", "state", "snapshot", "txnindex"
LOG_KINDS = frozenset({LOG, STATE})  # sections of batches
# What a small file of a log directory states, as sections of kinds of their own.
HIGH_WATERMARK, LOG_START, LEADER_EPOCH = "high_watermark", "log_start", "leader_epoch"
CLUSTER_ID, NODE_ID, TOPIC_ID = "cluster_id", "node_id", "topic_id"
CLEAN_SHUTDOWN = "clean_shutdown"  # stated beside a high watermark that no broker has moved since
STATED_OF_PARTITION = frozenset({HIGH_WATERMARK, LOG_START, LEADER_EPOCH, TOPIC_ID})
# Grammars of a broker's own files: as they are, and with the checksum of every batch looked at (--verify).
BINARY, BINARY_VERIFIED = "binary", "binary-verified"
BINARY_GRAMMARS = frozenset({BINARY, BINARY_VERIFIED})
