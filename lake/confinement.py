"""What the parsing child gives up before it reads: memory, time, disk, network."""

import ctypes
import platform
import resource
import signal
import struct
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_SOCKET_CALL = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | 13  # refuse = the call fails with EACCES


def limit_resources(*, memory_bytes: int, cpu_s: int, file_bytes: int) -> None:
    """Bound this process for good; no core files, few open files."""
    for which, limit in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(which)
        lowest = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(which, (lowest, lowest))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def refuse_network() -> bool:
    """Make every later attempt to open a socket fail; return whether the kernel took the rule."""
    known = _SOCKET_CALL.get(platform.machine())
    if sys.platform != "linux" or known is None:
        return False
    architecture, socket_call = known
    rules = b"".join(
        struct.pack("HBBI", *rule)
        for rule in (
            (_LOAD, 0, 0, 4),
            (_JUMP_IF_EQUAL, 1, 0, architecture),
            (_RETURN, 0, 0, _REFUSE),
            (_LOAD, 0, 0, 0),
            (_JUMP_IF_EQUAL, 0, 1, socket_call),
            (_RETURN, 0, 0, _REFUSE),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    buffer = ctypes.create_string_buffer(rules, len(rules))

    class _Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    program = _Program(len(rules) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0)
