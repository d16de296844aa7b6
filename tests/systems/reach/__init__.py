"""The program where files are in a bucket: an S3 server of its own on loopback, whole commands, and a table."""
