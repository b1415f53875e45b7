"""nbgrader: its gradebook, its notebooks, its release step."""
