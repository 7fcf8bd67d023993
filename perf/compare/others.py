"""Processor time of other processes: a figure is one of an idle machine only where that time is next to nothing. Kernel
threads do not count, since they work mostly for the launches; nor does a process that ends between two samples."""
import os

TICKS = os.sysconf("SC_CLK_TCK")
DISTURBS = 0.05     # of a processor


def stat_of(pid):
    """(name, parent, start, seconds of processor time); None of a process that has gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    words = text[text.rindex(")") + 2:].split()
    return text[text.index("(") + 1:text.rindex(")")], int(words[1]), int(words[19]), (int(words[11]) + int(words[12])) / TICKS


def look():
    """(pid, start) -> (name, seconds of processor time), of every process but this one and the kernel's."""
    found = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        stat = stat_of(pid) if pid not in (2, os.getpid()) else None
        if stat and stat[1] != 2:
            found[pid, stat[2]] = stat[0], stat[3]
    return found


def taken(before, after, seconds):
    """Processors used between two samples that are so many seconds apart: by all processes, and (share, name and pid)
    of the one that used most. A process that has begun meanwhile and still runs counts whole."""
    shares = {who: (used - before.get(who, (name, 0))[1]) / seconds for who, (name, used) in after.items()}
    if not shares:
        return 0, (0, "")
    most = max(shares, key=shares.get)
    return sum(shares.values()), (shares[most], f"{after[most][0]} {most[0]}")


def disturbed(found):
    """Of what was taken during a launch: [all together, ...]."""
    return found[0] > DISTURBS


def text_of(launches):
    """For the table, from what was taken during each launch: [all together, [share, name]]."""
    if not launches:
        return "What else ran was not looked at."
    those = [found for found in launches if disturbed(found)]
    if not those:
        return f"During none of {len(launches)} launches did other processes take more than {DISTURBS} of a processor."
    worst = max(those, key=lambda found: found[0])
    return (f"**Disturbed**: during {len(those)} of {len(launches)} launches other processes took more than {DISTURBS} of a processor, at most "
            f"{worst[0]:.2f}, of which {worst[1][1]} took {worst[1][0]:.2f}.")
