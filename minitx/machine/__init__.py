"""What the machine does for a pass: threads, memory, interrupts, and what a person is shown."""
