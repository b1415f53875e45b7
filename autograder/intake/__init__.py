"""Find submitted files and read their code, without trusting them. Nothing here imports torch."""
