"""chat.py PROGRAM: talks to `weir chat smollm2` through a terminal; prints what went wrong, nothing if all is well."""
import os
import pty
import select
import sys
import time

LIMIT = 120  # seconds until a silence counts as a hang


class Terminal:
    def __init__(self, arguments):
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(arguments[0], arguments)

    def send(self, data):
        self.seen = b""
        os.write(self.fd, data)

    def wait_for(self, condition, what):
        """Reads until condition(all that was seen since the last send)."""
        end = time.time() + LIMIT
        while not condition(self.seen):
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.time()))
            if not ready:
                raise SystemExit(f"waited in vain for {what}; saw {self.seen!r}")
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                raise SystemExit(f"ended before {what}; saw {self.seen!r}")
            self.seen += data

    def prompt(self, what):
        self.wait_for(lambda seen: seen.endswith(b"> "), "the prompt " + what)


def main():
    t = Terminal([sys.argv[1], "chat", "smollm2", "-n", "1500"])
    t.prompt("at the start")
    t.send(b"Write a very long story about a clockmaker.\n")
    t.wait_for(lambda seen: len(seen) > 100, "an answer")
    t.send(b"\x03")
    t.prompt("after Ctrl-C in an answer")
    t.send(b"\x03")
    t.prompt("after Ctrl-C at the prompt")
    t.send(b"/help\n")
    t.wait_for(lambda seen: b"/reset" in seen and seen.endswith(b"> "), "help")
    t.send(b"/reset\n")
    t.prompt("after /reset")
    t.send(b"\x04")
    _, status = os.waitpid(t.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        print("exit code", os.waitstatus_to_exitcode(status))


main()
