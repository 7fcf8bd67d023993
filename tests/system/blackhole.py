#!/usr/bin/env python3
"""Two TUN devices, tap0 of each of two network namespaces, joined by a relay that drops packets above a length
without a word, as a broken path does. Usage: blackhole.py NAMESPACE-1 NAMESPACE-2 BYTES SECONDS. Prints "ready";
ends by itself."""
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TUN_NO_PI = 0x1001


def device(namespace, address):
    """A descriptor of the device, which is made in the namespace; this process stays in the last one."""
    fd = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(fd)
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"net0", IFF_TUN_NO_PI))
    for words in (f"address add {address} dev net0", "link set net0 up", "link set lo up"):
        subprocess.run(["ip", *words.split()], check=True)
    return tun


def main():
    first, second, longest, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
    ends = [device(first, "10.78.0.1/24"), device(second, "10.78.0.2/24")]
    print("ready", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for fd in select.select(ends, [], [], 0.1)[0]:
            packet = os.read(fd, 70000)
            if len(packet) <= longest:
                os.write(ends[1] if fd == ends[0] else ends[0], packet)


main()
