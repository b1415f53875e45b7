"""Our end of the line to a student: start sandboxed processes, ask them, end them."""
