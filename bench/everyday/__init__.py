"""Everyday tasks for the embedded model, each with a check of what is true afterwards."""
