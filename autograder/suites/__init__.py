"""One suite an exercise. A suite imports its reference and the comparison, and speaks to the student by a proxy."""
