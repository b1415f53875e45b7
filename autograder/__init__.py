"""Attention by Hand · 手写注意力: the grader. In a notebook: `from autograder import check, hint`."""

from .learner.notebook import check, hint

__all__ = ["check", "hint"]
