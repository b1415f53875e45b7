"""What a learner uses: `check` and `hint` in a notebook, `autograder check` on the command line, and progress."""
