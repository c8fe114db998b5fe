"""How fast and how lean minitx is beside other systems.

Run it with `make bench`, or python -m benchmarks [--only CASE] [--quick]. Read downward: cases.py
(what is measured, and what is wanted), __main__.py (the command), rounds.py (processes in turn),
peers.py (what each system does in a turn), shapes.py (random weights, ONNX files), corpus.py
(experiments that read many documents), summary.py (ratios, tables, figure), machine.py (what it ran
on). Everything compared here was measured in the same rounds; a number of one run means nothing
beside one of another.
"""
