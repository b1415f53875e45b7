"""Data out: files for programs and pages for people."""
