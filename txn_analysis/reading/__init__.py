"""Reading: files become batches and records, and every byte is accounted for."""
