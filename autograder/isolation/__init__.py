"""The trusted side of a student's process: start sandboxed processes, ask them questions, end them."""
