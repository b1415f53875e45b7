"""Notebooks and messages, mutated at random: the trusted side must neither crash nor hang nor give a mark for them."""
