"""What an experiment is: its options, its numbers with their nulls, its answer, and its Result."""
