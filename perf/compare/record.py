"""What has been measured, one line per launch, written when it ends: `launches.jsonl` beside the table. A run that
is cut keeps what it has, and one that resumes makes the launches that are missing; one that does not keeps what
was there as `launches.before.jsonl`. The first line of every piece says how it was made.

    {"piece": {...}}                                                             about(), of `run`
    {"launch": LABEL, "number": N, "collectives": [...], "library": ..., "version": ..., "rows": [...], "others":
    [...]} {"failure": TEXT}
"""
import json

import others


class Record:
    def __init__(self, folder, about, peers, resume, again=False):
        """`again`: launches during which other processes computed are left out, as failed ones are, so that they are
        made again."""
        self.path = folder / "launches.jsonl"
        self.results = {"about": about, "pieces": [], "peers": peers, "versions": {}, "failures": [], "rows": [], "others": []}
        self.known = {}         # (label, number, collective) -> is it offered?
        folder.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and not resume:       # an hour's work, perhaps: the last that was there is kept
            self.path.replace(folder / "launches.before.jsonl")
        lines = self.path.read_text(encoding="utf-8").splitlines() if resume and self.path.exists() else []
        self.file = open(self.path, "w", encoding="utf-8")
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:          # cut while it was written
                continue
            # those are tried again
            if "failure" not in entry and not (again and others.disturbed(entry.get("others", (0,)))):
                self.put(entry)
        self.put({"piece": about})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def put(self, entry):
        self.file.write(json.dumps(entry) + "\n")
        self.file.flush()
        if "piece" in entry:
            self.results["pieces"].append(entry["piece"])
        elif "failure" in entry:
            self.results["failures"].append(entry["failure"])
        else:
            for name in entry["collectives"]:
                self.known[entry["launch"], entry["number"], name] = entry["version"] is not None
            if entry["version"] is not None:
                self.results["versions"][entry["library"]] = entry["version"]
            self.results["rows"] += entry["rows"]
            self.results["others"] += [entry["others"]] if "others" in entry else []    # older pieces did not look

    def add(self, label, number, collectives, library, version, rows, others):
        """A launch; without a version where it offers none of these collectives. `others`: what other processes took
        meanwhile."""
        self.put({"launch": label, "number": number, "collectives": collectives, "library": library, "version": version, "rows": rows,
                  "others": others})

    def fail(self, text):
        print(f"  {text}", flush=True)
        self.put({"failure": text})

    def has(self, label, number, collective):
        return (label, number, collective) in self.known

    def offered(self, label, number):
        """Of what there is of this launch."""
        return any(offered for (of, at, _), offered in self.known.items() if (of, at) == (label, number))
