"""What takes too long for `make test`: `python -m tests.proof`; what came of it stands in `docs/proofs.md`."""
