"""Audit of Kafka transaction health from files copied off the brokers."""

__version__ = "0.1.0"
