"""Print the gradebook, the journal (which holds the salt) and the results. It must not reach them."""

seen = []
for place in ("@GRADEBOOK@", "@OUT@/journal.jsonl", "@OUT@/results.json", "../../../gradebook.db"):
    try:
        seen.append(open(place, errors="replace").read())
    except OSError:
        pass
if seen:
    raise RuntimeError("@MARK@ read " + "this: " + seen[0][:200])
