"""prompt.py PROGRAM CASE [ARGUMENT]: uses the prompt through a terminal; prints what went wrong, nothing if all is well."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

LIMIT = 60  # seconds until a silence counts as a hang
CONTROL = re.compile(rb"\x1b\[[\d?;]*[A-Za-z]")


class Failed(Exception):
    pass


class Terminal:
    def __init__(self, arguments, **environment):
        self.seen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update({"TERM": "xterm", "PS1": "$ ", **environment})
            os.execvp(arguments[0], arguments)
        self.size(100, 30)

    def size(self, columns, rows):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def text(self):
        """What was seen without control sequences; what a carriage return goes back over is gone."""
        lines = re.sub(rb"\r+\n", b"\n", CONTROL.sub(b"", self.seen)).split(b"\n")
        return "\n".join(line[line.rfind(b"\r") + 1 :].decode("utf-8", "replace") for line in lines)

    def send(self, data):
        self.seen = b""
        os.write(self.fd, data if isinstance(data, bytes) else data.encode())

    def wait_for(self, condition, what):
        """Reads until condition(text since the last send)."""
        end = time.time() + LIMIT
        while not condition(self.text()):
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.time()))
            if not ready:
                raise Failed(f"waited in vain for {what}; saw {self.text()!r}")
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                raise Failed(f"ended before {what}; saw {self.text()!r}")
            self.seen += data
        return self.text()

    def expect(self, part):
        return self.wait_for(lambda text: part in text, repr(part))

    def prompt(self):
        return self.wait_for(lambda text: re.search(r"(^|\n)> $", text), "the prompt")

    def more(self):
        return self.wait_for(lambda text: text.endswith("\n>> "), "the continuation prompt")

    def enter(self, line):
        """Enters a line, waits for the next prompt; what was shown between."""
        self.send(line + "\r")
        # A prompt that answers an earlier key may still come first.
        text = self.wait_for(lambda text: line + "\n" in text and re.search(r"\n> $", text), "the next prompt")
        return text[text.index(line + "\n") + len(line) + 1 : -2]

    def ended(self):
        """Waits for the end; the exit code."""
        while True:
            try:
                data = os.read(self.fd, 4096)
                if not data:
                    break
                self.seen += data
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def is_cooked(self):
        flags = termios.tcgetattr(self.fd)[3]
        return bool(flags & termios.ICANON) and bool(flags & termios.ECHO)


def check(got, wanted):
    if got != wanted:
        raise Failed(f"got {got!r}, wanted {wanted!r}")


def start(**environment):
    t = Terminal([sys.argv[1]], **environment)
    t.prompt()
    return t


def r1(t):
    check(t.enter('"hello'), "error: line 1: unfinished string near '<eof>'\n")
    check(t.enter('world"'), "error: line 1: unfinished string near '\"'\n") if False else t.enter('world"')
    check(t.enter("1+1"), "2\n")


def r3(t):
    for lines in (
        ["for i = 1, 2 do", "io.write(i)", "end"], ["= [[", "]]"], ["--[[", "]] 7"], ["= 1 +", "2"], ["print(", "1)"], ["x = {1,", "2}"],
        ["= {1,", "2}"], ["if x then", "else", "end"], ["repeat", "until true"], ["= function()", "end"], ["x =", "1"], ["= 'a\\", "b'"], ["x = not", "x"],
    ):
        for line in lines[:-1]:
            t.send(line + "\r")
            t.more()
        if "error" in t.enter(lines[-1]):
            raise Failed(f"an error after {lines}: {t.text()!r}")
    check(t.enter("x = '<eof>' )"), "error: line 1: unexpected symbol near ')'\n")
    t.send("for i = 1, 2 do\r")
    t.more()
    t.send("\x03")
    t.prompt()
    check(t.enter("1+1"), "2\n")


def r9(t):
    check(t.enter("hello)"), "error: line 1: '=' expected near ')'\n")
    check(t.enter("=hello)"), "error: line 1: '<eof>' expected near ')'\n")
    check(t.enter("1 + * 2"), "error: line 1: unexpected symbol near '*'\n")


def r13(t):
    for _ in range(3):
        t.send("\x03")
        t.prompt()
    t.send("forgotten")
    t.expect("forgotten")
    t.send("\x03")
    t.prompt()
    check(t.enter("1+1"), "2\n")


def e23(t):
    t.enter("local kept, ticks = 5, 0")
    t.enter("weir.spawn(function() while true do weir.sleep(0.01) ticks = ticks + 1 end end)")
    for loop in ("while true do end", "while true do pcall(function() while true do end end) end", "while true do pcall(weir.sleep, 0.01) end",
                 "weir.receive()", "weir.sleep(1000)", "repeat coroutine.wrap(function() while true do pcall(error) end end)() until false"):
        t.send(loop + "\r")
        t.expect(loop + "\n")
        time.sleep(0.1)
        t.send("\x03")
        time.sleep(0.02)
        os.write(t.fd, b"\x03")
        t.expect("interrupted")
        t.prompt()
        t.send("\x03")  # drains a second ^C that came after the first had done
        t.prompt()
    check(t.enter("kept"), "5\n")
    t.enter("before = ticks")
    t.enter("weir.sleep(0.1)")
    check(t.enter("ticks > before"), "true\n")


def actors_go_on(t):
    t.enter("weir.spawn(function() for i = 1, 3 do weir.sleep(0.15) print('tick', i) end end)")
    t.send("1 + ")
    t.expect("tick\t3")
    t.wait_for(lambda text: text.endswith("> 1 + "), "the edited line again")
    check(t.enter("41"), "42\n")
    t.enter("weir.spawn(function() for i = 1, 4 do weir.sleep(0.05) io.write(i) end end)")
    t.wait_for(lambda text: text.endswith("\n4\n> "), "the last of four pieces")
    check(b"\x1b[A\x1b[4G4" in t.seen, True)  # a line without an end goes on where it was
    check(t.enter("1+1"), "2\n")


def completion(t):
    t.send("weir.spa\t")
    t.wait_for(lambda text: text.endswith("> weir.spawn"), "a completed name")
    t.send("\t")
    t.wait_for(lambda text: "spawn       spawn_with" in text and text.endswith("> weir.spawn"), "a list")
    t.send("\x15local answer = 6 * 7\r")
    t.prompt()
    t.send("ans\t\r")
    t.wait_for(lambda text: text.endswith("\n42\n> "), "a local's value")
    t.send('require "weir.saf\t"\r')
    t.wait_for(lambda text: "weir.safetensors" in text and text.endswith("}\n> "), "a module")


def functions_and_errors(t):
    for line in ("local function inner(x)", "  if x > 2 then", "    error('too large: ' .. x)", "  end", "  return x"):
        t.send(line + "\r")
        t.more()
    t.send("end\r")
    t.prompt()
    check(t.enter("inner(1), inner(2)"), "1\n2\n")
    text = t.enter("inner(3), 1")
    for part in ("error: prompt:3: too large: 3\nstack traceback:\n", "prompt:3: in function 'inner'", "prompt:1: in main chunk"):
        if part not in text:
            raise Failed(f"{part!r} is not in {text!r}")
    if "weir/" in text:
        raise Failed(f"the prompt's own calls are in {text!r}")
    t.send("\x1b[A\x1b[A")
    t.wait_for(lambda text: text.endswith("> inner(1), inner(2)"), "the entry before")
    t.send("\x12error\r")
    t.prompt()
    if "error('too large" not in t.text():
        raise Failed(f"the search did not find the function: {t.text()!r}")


def generation(t):
    path = sys.argv[3]
    t.enter(f"m = weir.load {path!r}")
    t.enter("n = 0")
    t.send("while true do for piece in m:generate{prompt = 'Once upon a time', max_tokens = 400} do n = n + 1 end end\r")
    t.expect("end end\n")
    time.sleep(0.5)
    t.send("\x03")
    t.expect("interrupted")
    t.prompt()
    check(t.enter("n > 10"), "true\n")
    text = t.enter("m:complete{prompt = 'Once upon a time', max_tokens = 12}")
    if not text.startswith('", there was a'):
        raise Failed(f"the next generation is {text!r}")
    check(t.enter("#_ > 10"), "true\n")


def dead_addresses(t):
    t.enter("a = weir.spawn(function() end)")
    t.enter("weir.sleep(0.01)")
    if not re.match(r"actor \d+ \(dead\)\n$", t.enter("a")):
        raise Failed(t.text())
    if not re.match(r"actor \d+\nnil\n$", t.enter("print(a)") + t.enter("=nil")):
        raise Failed(t.text())
    if "ENOACTOR" not in t.enter("weir.send(a, 'x')") or "ENOACTOR" not in t.enter("weir.call(a, 'x')"):
        raise Failed(t.text())
    check(t.enter("weir.kill(a)"), "false\n")
    check(t.enter("1+1"), "2\n")


def documentation(t):
    if "Starts an actor" not in t.enter("?weir.spawn") or "mailbox full" not in t.enter("?EFULL") or "near: weir.spawn" not in t.enter("?weir.spwan"):
        raise Failed(t.text())
    if "Ctrl-D" not in t.enter("?") or "weir.receive(timeout)" not in t.enter("?weir"):
        raise Failed(t.text())


def end(t):
    t.enter("weir.on_shutdown(function() weir.sleep(0.01) print('last words') end)")
    t.send("\x04")
    t.expect("last words")
    check(t.ended(), 0)


def exits(t):
    t.send("os.exit(3)\r")
    check((t.ended(), t.text()), (3, "> os.exit(3)\n"))


def terminate(t):
    t.send("abc")
    t.expect("abc")
    check(t.is_cooked(), False)
    copy = os.dup(t.fd)
    os.kill(t.pid, signal.SIGTERM)
    while os.waitpid(t.pid, os.WNOHANG)[0] == 0:
        if select.select([t.fd], [], [], 0.05)[0]:
            try:
                os.read(t.fd, 4096)
            except OSError:
                time.sleep(0.01)
    flags = termios.tcgetattr(copy)[3]
    check(bool(flags & termios.ICANON and flags & termios.ECHO), True)


def suspend(_):
    t = Terminal(["bash", "--norc", "--noprofile", "-i"])
    t.expect("$ ")
    t.send(sys.argv[1] + "\r")
    t.prompt()
    t.send("1 +")
    t.expect("1 +")
    t.send("\x1a")
    t.wait_for(lambda text: "Stopped" in text and text.endswith("$ "), "the shell")
    t.send("stty -a | grep -o -- '-\\?icanon'\r")
    t.expect("\nicanon")
    t.send("fg\r")
    t.wait_for(lambda text: text.endswith("> 1 +"), "the edited line again")
    check(t.is_cooked(), False)
    check(t.enter(" 1"), "2\n")
    t.send("\x04")
    t.expect("$ ")


def resize(t):
    t.send("x" * 60)
    t.wait_for(lambda text: text.endswith("x" * 60), "a long line")
    t.seen = b""
    t.size(40, 30)
    t.wait_for(lambda text: text.endswith("> " + "x" * 38 + "\n" + "x" * 22), "the line in the new width")


def idle(t):
    def switches():
        with open(f"/proc/{t.pid}/status") as file:
            return [line for line in file if "ctxt_switches" in line]

    t.send("abc")
    t.expect("abc")
    time.sleep(0.2)
    before = switches()
    time.sleep(0.7)
    check(switches(), before)


def dumb(_):
    t = Terminal([sys.argv[1]], TERM="dumb")
    t.prompt()
    t.send("1+1\n")
    t.wait_for(lambda text: text.endswith("1+1\n2\n> "), "a value")
    t.send("for i = 1, 2 do\n")
    t.more()
    t.send("print(i) end\n")
    t.wait_for(lambda text: text.endswith("1\n2\n> "), "a loop")
    t.send("\x03")
    t.prompt()
    t.send("weir.receive()\n")
    t.expect("weir.receive()\n")
    time.sleep(0.1)
    t.send("\x03")
    t.prompt()
    t.send("\x04")
    check(t.ended(), 0)
    if b"\x1b" in t.seen:
        raise Failed("control sequences for a dumb terminal")


def main():
    case = globals()[sys.argv[2]]
    try:
        case(None if case in (suspend, dumb) else start())
    except Failed as failure:
        print(failure)


main()
