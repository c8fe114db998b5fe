"""What continuing a text takes beside the loop of generate.py: prompts, rules, beams."""
