"""Proofs of the course (`audit`) and of the machine (`doctor`)."""
