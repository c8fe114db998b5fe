"""Experiments on what a model computes.

Read spectra.py, profiles.py, nulls.py (arrays in, arrays out), then registry.py (what an experiment is), any
file of experiments/, and last results.py, report.py and __main__.py, which turn the registry into files, a
page and commands.
"""
