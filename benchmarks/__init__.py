"""What an audit costs, as ratios in one run on one machine: `make bench`."""
