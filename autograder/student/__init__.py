"""Code that runs in the student's process. It knows no answer and imports nothing else of the package."""
