"""Where files lie that are on no disk of this machine: object stores and HDFS, named by URIs."""
