"""Open the gradebook with SQL and give itself full marks. It must not reach it."""

import sqlite3

for place in ("@GRADEBOOK@", "gradebook.db", "../gradebook.db", "../../../gradebook.db"):
    try:
        with sqlite3.connect(place) as book:
            book.execute("UPDATE grade SET auto_score = 20, manual_score = 20")
            book.execute("CREATE TABLE IF NOT EXISTS owned (mark TEXT)")
            book.execute("INSERT INTO owned VALUES ('@MARK@')")
    except sqlite3.Error:
        pass
