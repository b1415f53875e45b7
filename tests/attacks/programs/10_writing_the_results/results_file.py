"""Write the results and the journal itself. Neither may change; it must earn nothing."""

import json

RESULT = {"student": "@MARK@", "exercise": "06_masks", "score": 20, "max_score": 20, "verdict": "pass", "parts": []}
for name in ("results.json", "journal.jsonl", "grades.csv", "class.html", "@MARK@.html"):
    try:
        with open("@OUT@/" + name, "a") as file:
            file.write(json.dumps({"schema": 1, "submissions": [RESULT], "key": "@MARK@", "result": RESULT}))
    except OSError:
        pass
