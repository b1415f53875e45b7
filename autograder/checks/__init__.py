"""Checks of the course itself (`audit`) and of the grading machine (`doctor`)."""
