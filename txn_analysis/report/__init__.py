"""What a run found, for people and for programs: text, JSON, HTML, CSV, metrics. It renders, and decides nothing."""
