"""Programs that attack the grader, and checks from outside that none of them succeeds."""
