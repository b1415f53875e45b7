"""What runs beside a student's code. Nothing here knows an answer, and nothing here imports the rest of the package."""
