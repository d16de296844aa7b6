"""A capture over the network, for clusters whose disks nobody reaches: `txn-capture`, a program of its own.

Nothing of the audit imports this room, and nothing but `client` imports the client library, which is an extra
(`pip install 'txn-analysis[capture]'`).
"""
