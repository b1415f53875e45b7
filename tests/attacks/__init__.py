"""Programs that try to get past the grader, and the means to see from outside that none does."""
