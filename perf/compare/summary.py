"""From the rows of all launches to medians, quartiles, ratios, a table and pictures. Pure functions, except for what
writes files."""
import math
import subprocess
from pathlib import Path

import others

LATENCY_MOST = 8192     # bytes: up to here a ratio counts as latency, above as bandwidth
FAR = 1.8               # times as long a barrier: the cores are in another place than before, and so is every figure
SHARED = 1.08           # times as long an addition: another thread of the core is busy
PLACES = ("near", "far")
CASE = ("collective", "ranks", "transport", "mode", "cores")


def quantile(values, share):
    """Linear interpolation between the two nearest."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    if below + 1 >= len(ordered):
        return ordered[-1]
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])


def spread(values):
    return {"median": quantile(values, 0.5), "low": quantile(values, 0.25), "high": quantile(values, 0.75)}


def ends(values):
    """The least and the greatest but for 3 in 100 at either end, and one at least: a single row that something has
    disturbed is none of both."""
    ordered = sorted(values)
    aside = max(1, round(0.03 * (len(ordered) - 1)))
    return (ordered[aside], ordered[-1 - aside]) if len(ordered) > 2 * aside else (0, 0)


def teller(ranks, cores):
    """What tells how far the ranks' cores are from each other: (part of a row, in words). Where ranks share cores the
    barrier has their changes of place in it."""
    return ("barrier_us", "the harness's barrier") if ranks <= cores else ("line_us", "a line's way from one to the other and back")


def placed(rows, cores):
    """The rows, each with "cores": where a hypervisor has moved the ranks' cores between places that are near each
    other and far, which is told before each size, "near" or "far", so that no figure is of both; else empty."""
    found = []
    for ranks in sorted({row["ranks"] for row in rows}):
        part, _ = teller(ranks, cores)
        group = [row for row in rows if row["ranks"] == ranks]
        times = [row[part] for row in group if row.get(part)]
        low, high = ends(times)
        moved = len(times) == len(group) and high > FAR * low
        for row in group:
            place = PLACES[row[part] > (low * high) ** 0.5] if moved else ""
            found.append({**row, "cores": place})
    return found


def case_of(row):
    return tuple(row[part] for part in CASE)


def label_of(row):
    """The name of a line: a library, with its memory where it is its own beside the heap's."""
    return f"{row['library']}+mem" if row["library"] == "gyre" and row["memory"] == "own" else row["library"]


def gather(rows):
    """case -> label -> bytes -> the best variant: {variant, median, low, high, launches, wall, busbw}.

    A figure is the median over launches of the launches' medians; low and high are the quartiles over launches. The
    rows are placed().
    """
    samples = {}
    for row in rows:
        key = case_of(row), label_of(row), row["bytes"], row["variant"]
        samples.setdefault(key, []).append(row)
    cases = {}
    for (case, label, size, variant), launches in samples.items():
        figure = spread([row["median_us"] for row in launches])
        figure.update(variant=variant, wall=quantile([row["wall_us"] for row in launches], 0.5),
                      launches={row["launch"]: row["median_us"] for row in launches},
                      walls={row["launch"]: row["wall_us"] for row in launches},
                      busbw=launches[0]["busbw_gbs"] * launches[0]["median_us"] / figure["median"])
        sizes = cases.setdefault(case, {}).setdefault(label, {})
        if size not in sizes or figure["median"] < sizes[size]["median"]:
            sizes[size] = figure
    return cases


def figures(cases):
    """The figures as rows {collective, ranks, transport, mode, cores, label, bytes, variant, median, low, high, wall,
    busbw, medians}: what results.json keeps of the launches; medians are theirs, in order."""
    found = []
    for case, labels in sorted(cases.items()):
        for label, sizes in sorted(labels.items()):
            for size, figure in sorted(sizes.items()):
                numbers = {part: float(f"{figure[part]:.5g}") for part in ("median", "low", "high", "wall", "busbw")}
                found.append({**dict(zip(CASE, case)), "label": label, "bytes": size,
                              "variant": figure["variant"], **numbers, "medians": [median for _, median in sorted(figure["launches"].items())]})
    return found


def behind(rows, place, peers, factor):
    """(library, variant, mode) of the peers and limits whose every figure at this (ranks, transport) is at least
    `factor` times that of the best of its kind. gyre is no peer."""
    figures = {}
    for row in rows:
        if (row["ranks"], row["transport"]) == place and row["library"] != "gyre":
            kind = "peer" if row["library"] in peers else row["library"]
            name = row["library"], row["variant"], row["mode"]
            figures.setdefault((kind, row["collective"], row["mode"], row["bytes"]), {}).setdefault(name, []).append(row["median_us"])
    near, seen = set(), set()
    for values in figures.values():
        medians = {name: quantile(times, 0.5) for name, times in values.items()}
        seen.update(medians)
        near.update(name for name, median in medians.items() if median < factor * min(medians.values()))
    return seen - near


def compare(ours, theirs, of="launches"):
    """How many times as fast as `theirs` we are: the ratio of medians, and the quartiles of the ratios launch by
    launch, widened to it where launches were so few or so unlike that they leave it out."""
    medians = [quantile(list(figure[of].values()), 0.5) for figure in (ours, theirs)]
    pairs = [theirs[of][launch] / value for launch, value in ours[of].items() if launch in theirs[of]]
    ratio = medians[1] / medians[0]
    if not pairs:
        return {"median": ratio, "low": 0.0, "high": float("inf")}
    found = spread(pairs)
    return {"median": ratio, "low": min(found["low"], ratio), "high": max(found["high"], ratio)}


def ratios(cases, peers):
    """Rows {collective, ranks, transport, mode, cores, memory, bytes, against, median, low, high, wall}; against the
    best peer and the limit."""
    found = []
    for case, labels in sorted(cases.items()):
        for ours, memory, limit in (("gyre", "private", "limit_private"), ("gyre+mem", "own", "limit_shared")):
            for size, figure in sorted(labels.get(ours, {}).items()):
                rivals = [(labels[peer][size]["median"], peer) for peer in peers if size in labels.get(peer, {})]
                against = [min(rivals)[1]] if rivals else []
                against += [limit] if size in labels.get(limit, {}) else []
                for name in against:
                    found.append({**dict(zip(CASE, case)), "memory": memory, "bytes": size,
                                  "against": name, **compare(figure, labels[name][size]),
                                  "wall": compare(figure, labels[name][size], "walls")["median"]})
    return found


def agreement(cases, peers):
    """How the peers' isolated figures stand to those of a loop like the OSU benchmarks': [(case, label, bytes,
    isolated / osu)]."""
    found = []
    for case, labels in sorted(cases.items()):
        other = cases.get((*case[:3], "osu", case[4]), {}) if case[3] == "isolated" else {}
        for label in peers:
            found += [(case, label, size, figure["median"] / other[label][size]["median"])
                      for size, figure in sorted(labels.get(label, {}).items()) if size in other.get(label, {})]
    return found


def agreement_text(found):
    """Per case and library the range, and the sizes beyond a tenth."""
    lines = ["### Agreement with a loop like the OSU benchmarks': isolated / osu, medians", ""]
    for case, label in sorted({(case, label) for case, label, _, _ in found}):
        values = {size: value for of, name, size, value in found if (of, name) == (case, label)}
        beyond = [f"{size_text(size)}: {value:.2f}" for size, value in values.items() if not 0.9 <= value <= 1.1]
        lines.append(f"- {label}, {title_of(case)}: {min(values.values()):.2f} to {max(values.values()):.2f}; " +
                     (f"beyond a tenth at {', '.join(beyond)}" if beyond else "all within a tenth"))
    return "\n".join(lines) + "\n"


def title_of(case):
    """all_gather, 2 ranks, shm, cores far from each other"""
    collective, ranks, transport, mode, cores = case
    return (f"{collective}, {ranks} ranks, {transport}" + ("" if mode == "isolated" else f", {mode}") +
            (f", cores {cores} {'to' if cores == 'near' else 'from'} each other" if cores else ""))


def size_text(size):
    for unit, text in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {text}"
    return str(size)


def number_text(value):
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def figure_text(figure, crowded):
    if not figure:
        return ""
    text = f"{number_text(figure['median'])} ({number_text(figure['low'])}–{number_text(figure['high'])})"
    return f"{text} wall {number_text(figure['wall'])}" if crowded else text


def ratio_text(ratio, crowded):
    text = f"{ratio['median']:.2f} ({ratio['low']:.2f}–{ratio['high']:.2f}) {ratio['against']}"
    return f"{text}, wall {ratio['wall']:.2f}" if crowded else text


def table_of(case, labels, all_ratios, cores):
    """Markdown: one line per size, one column per library, then gyre against the best peer and the limit."""
    crowded = case[1] > cores
    names = sorted(labels, key=lambda name: (not name.startswith("gyre"), name.startswith("limit"), name))
    sizes = sorted({size for figures in labels.values() for size in figures})
    against = {}
    for ratio in all_ratios:
        if case_of(ratio) == case:
            against.setdefault(ratio["bytes"], []).append(
                ("mem: " if ratio["memory"] == "own" else "") + ratio_text(ratio, crowded))
    launches = [(name, [len(figure["launches"]) for figure in labels[name].values()]) for name in names]
    lines = [f"### {title_of(case)}", "",
             "Launches: " + ", ".join(f"{name} " + "–".join(str(n) for n in sorted({min(many), max(many)})) for name, many in launches) + ".", "",
             "| bytes | " + " | ".join(names) + " | gyre is times as fast as |", "|---" * (len(names) + 2) + "|"]
    for size in sizes:
        cells = [figure_text(labels[name].get(size), crowded) for name in names]
        lines.append(f"| {size_text(size)} | " + " | ".join(cells) + " | " + "; ".join(against.get(size, [])) + " |")
    return "\n".join(lines) + "\n"


def places(rows, cores):
    """What to say where the cores have moved."""
    texts = []
    for ranks in sorted({row["ranks"] for row in rows if row["cores"]}):
        part, words = teller(ranks, cores)
        times = {place: [row[part] for row in rows if row["ranks"] == ranks and row["cores"] == place] for place in PLACES}
        texts.append(f"The cores of {ranks} ranks were near each other for some sizes and launches and far for others: {words} before each took " +
                     " or ".join(f"{quantile(values, 0.5):.2f} µs ({place}, {len(values)} times)" for place, values in times.items()) +
                     ". The two have tables of their own.")
    return texts


def shared_cores(rows):
    """What to say where a core's other thread was busy at times. Additions that wait for nothing then take half as long
    again, and nothing else tells: the clock's frequency is the same."""
    times = [row["work_ns"] for row in rows if row.get("work_ns")]
    low, high = ends(times)
    if high <= SHARED * low:
        return []
    slow = sum(value > SHARED * low for value in times)
    return [f"A core made {1 / low:.1f} additions in a nanosecond at best; in {slow} of {len(times)} rows one of them made less than {1 / (SHARED * low):.1f}: "
            "another one uses its units, which short calls feel."]


def report(results):
    """The whole table file."""
    about = results["about"]
    rows = placed(results["rows"], about["cores"])
    cases = gather(rows)
    all_ratios = ratios(cases, results["peers"])
    empty = [row["empty_us"] for row in results["rows"]]
    lines = [f"# {about['what']}, {about['date']}", "",
             f"{about['machine']}; {about['cores']} cores.", ""]
    lines += [f"- gyre {piece['gyre']}, {piece['date']}, load {piece['load']}: `{piece['command']}`" for piece in results["pieces"]]
    lines += ["",
             "Microseconds: the median over launches of each launch's median, and the quartiles over launches; a call's time is from the "
             "latest start to the latest end.",
             "“wall” is the time of the whole by the number of calls, the harness's barrier included; it is shown where ranks outnumber "
             "cores.",
             f"An empty call, two readings of the clock and the way out of the barrier, takes {quantile(empty, 0.5):.3f} µs; it is in "
             "every figure." if empty else "Nothing was measured.", *places(rows, about["cores"]), *shared_cores(rows),
             others.text_of(results["others"]), "",
             "Libraries: " + "; ".join(f"{name}: {text}" for name, text in sorted(results["versions"].items())) + ".", ""]
    lines += [f"**Failed**: {failure}" for failure in results["failures"]] + [""] * bool(results["failures"])
    lines += [table_of(case, labels, all_ratios, about["cores"]) for case, labels in sorted(cases.items())]
    agreed = agreement(cases, results["peers"])
    lines += [agreement_text(agreed)] if agreed else []
    return "\n".join(lines)


NAMES = {"gyre": "gyre", "gyre+mem": "gyre, its memory", "openmpi": "Open MPI", "mpich": "MPICH", "gloo": "Gloo",
         "limit_private": "limit, private", "limit_shared": "limit, shared"}
COLOURS = {"gyre": "#c00000", "gyre+mem": "#ff8080", "openmpi": "#1f5fbf", "mpich": "#2f9f4f", "gloo": "#8040a0",
           "limit_private": "#505050", "limit_shared": "#a0a0a0"}
APART = 0.055           # of the height of a plot: the least distance of two labels


def bytes_text(size):
    """32 B, 1 KiB, 32 MiB"""
    for unit, text in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {text}"
    return f"{size:g} B"


def size_tics(least, most):
    """[(size, text)]: 32 B, 1 KiB, 32 KiB, ... as far as they lie within; where only one does, every power of four."""
    tics = [1 << power for power in range(0, 60, 5) if least <= 1 << power <= most]
    if len(tics) < 2:
        tics = [1 << power for power in range(0, 60, 2) if least <= 1 << power <= most]
    return [(tic, bytes_text(tic)) for tic in tics]


def apart(places, least=APART):
    """Where labels stand that would stand at `places` (0 to 1): in the same order, at least so far from each other, and
    moved little."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups = []         # [sum of the wished places of the first, members]
    for i in order:
        groups.append([places[i], [i]])
        while len(groups) > 1 and groups[-2][0] + least * len(groups[-2][1]) > groups[-1][0]:
            place, members = groups.pop()
            below, others_ = groups[-1]
            wished = [places[m] - least * k for k, m in enumerate(others_ + members)]
            groups[-1] = [sum(wished) / len(wished), others_ + members]
    found = [0.0] * len(places)
    for place, members in groups:
        for k, i in enumerate(members):
            found[i] = place + least * k
    return found


def value_range(values, logarithmic):
    low, high = min(values), max(values)
    if not logarithmic:
        return 0.0, 1.05 * high
    return 10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high) + 1e-9)


def half(labels, part, what, logarithmic, title):
    """One plot of the two, with each line's name at its end."""
    values = [value for figures in labels.values() for f in figures.values() for value in ((f["low"], f["high"]) if part == "median" else (f[part],))]
    low, high = value_range(values, logarithmic)

    def height(value):
        return math.log(max(value, low) / low) / math.log(high / low) if logarithmic else value / high

    ends_ = [(label, figures[max(figures)][part]) for label, figures in labels.items()]
    places = apart([height(value) for _, value in ends_])
    script = [f'set title "{title}" noenhanced; set ylabel "{what}"; {"set" if logarithmic else "unset"} logscale y',
              f"set yrange [{low:g}:{high:g}]"]
    for number, ((label, _), place) in enumerate(zip(ends_, places), 1):
        script.append(f'set label {number} "{NAMES.get(label, label)}" at graph 1.02, graph {place:.4f} left textcolor rgb "{COLOURS.get(label, "#000000")}" noenhanced')
    lines = [f'${label.replace("+", "_")} using {"1:2:3:4 with yerrorlines" if part == "median" else "1:5 with linespoints"} '
             f'linewidth 1.5 pointtype 7 pointsize 0.5 linecolor rgb "{COLOURS.get(label, "#000000")}" notitle' for label in labels]
    return [*script, "plot " + ", ".join(lines), "unset label"]


def plot(case, labels, folder):
    """One picture: time and busbw against size, a line per library, quartiles over launches as bars."""
    name = "-".join(str(part) for part in case if part != "")
    labels = {label: figures for label, figures in labels.items() if figures}
    sizes = {size for figures in labels.values() for size in figures}
    if len(sizes) < 2:
        return None
    tics = ", ".join(f'"{text}" {size}' for size, text in size_tics(min(sizes), max(sizes)))
    script = [f"set terminal pngcairo size 1300,480 font 'DejaVu Sans,11'; set output \"{folder}/{name}.png\"", "set multiplot layout 1,2",
              f"set logscale x 2; set xrange [{min(sizes)}:{max(sizes)}]; set grid; set xtics ({tics}); set rmargin 17; set tics nomirror"]
    for label, figures in labels.items():
        script.append(f"${label.replace('+', '_')} << END")
        script += [f"{size} {f['median']} {f['low']} {f['high']} {f['busbw']}" for size, f in sorted(figures.items())]
        script.append("END")
    title = title_of(case)
    script += half(labels, "median", "time (µs)", True, title) + half(labels, "busbw", "bus bandwidth (GB/s)", False, title)
    subprocess.run(["gnuplot"], input="\n".join(script) + "\n", text=True, check=True, timeout=60)
    return Path(folder) / f"{name}.png"


def cases_of(figures_):
    """What plot() needs, of the figures that results.json keeps: case -> label -> bytes -> figure."""
    cases = {}
    for row in figures_:
        case = tuple(row.get(part, "") for part in CASE)
        cases.setdefault(case, {}).setdefault(row["label"], {})[row["bytes"]] = row
    return cases
