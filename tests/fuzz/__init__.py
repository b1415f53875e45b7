"""Notebooks and messages, mutated at random: the trusted side must not crash, hang or give marks for them."""
