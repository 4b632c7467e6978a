#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of this project that a compiler does not: who may include what, names, licence lines, what may not be
called inside a job, headers that stand alone, formatting, documents that name files which exist.

usage: tools/lint.py [--cc COMPILER] [--cflags FLAGS]        (make lint passes both, and builds with -Werror as well)
"""

import argparse
import ast
import fnmatch
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Which folder of src/ may include which. An entry with a slash is a prefix of a file's path.
MAY_INCLUDE = {
    "base": [],
    "flame": ["base"],
    "wire": ["base"],
    "pystack": ["base"],
    "store": ["base", "wire"],
    "agent": ["base", "flame", "wire", "pystack", "store/ring/"],
    "inject": ["base"],
    "client": ["base", "flame", "wire", "pystack", "store", "inject"],
    "relay": ["base", "wire", "pystack", "store", "inject", "client"],
    "tui": ["base", "flame", "wire", "pystack", "store", "inject", "client", "relay"],
    "cli": ["base", "flame", "wire", "pystack", "store", "inject", "client", "relay"],
}

# Within a folder: its rooms from below upwards; a room may include its own files, those of the folder itself, and of the rooms before it.
# A room is a folder, or a file of the folder itself that stands above others.
ROOMS = {
    "agent": ["access", "tables", "python", "alloc", "debug", "server", "torch", "sampler", "fork", "entry", "autostart", "remote_exec"],
    "client": ["target", "gpu", "symbols", "session", "samples", "engine", "sql", "verdict", "jobs", "hosts", "fleet", "export", "repl", "complete"],
    "store": ["ring", "sql", "recording"],
    "tui": ["keys", "theme", "model", "view", "term", "workers", "core", "screens", "host",
            "screen_text", "screen_picture", "job_picture", "main_options", "startup", "info", "main_complete", "main"],
}

# Folders whose files know each other one way only, and the circles that stay. A file is a .c with its .h.
ONE_WAY = ["base", "flame", "wire", "pystack", "inject", "store", "agent", "client", "relay", "tui", "cli"]
CIRCLES = {
    ("pystack/discover", "pystack/pystack", "pystack/pystack_internal"): "an interpreter that is read, how it is found, and what the files share",
    ("pystack/values", "pystack/values_internal"): "values, and what their files share",
    ("inject/check", "inject/inject", "inject/remote_exec", "inject/safe_point"): "what is asked of an injection, and who answers parts of it",
    ("inject/syscall_restart", "inject/thread"): "a thread that is let go has its system call put right",
    ("store/ring/ring", "store/ring/ring_format", "store/ring/ring_reader"): "the file's form, who writes it and who believes it",
    ("store/sql/sql", "store/sql/sql_internal"): "a session, and what its files share",
    ("agent/python/eval_internal", "agent/python/eval_run"): "one piece of code, and what its files share",
    ("agent/sampler/thread_sampler", "agent/sampler/thread_sampler_native"): "stacks, and their native part",
    ("agent/server/http/net_web", "agent/server/net_admission", "agent/server/net_text"): "a connection turns from one protocol to another",
    ("client/export/export", "client/export/export_formats"): "the table of formats, and their renderers",
    ("client/symbols/symbols_module", "client/symbols/symbols_serve"): "reading a file may need another one, which is asked for",
}

# Words that say nothing to a stranger, or several things: no part of the name of a file, a function, a type or a macro.
VAGUE = set("told tell tells wish wishes grant nursery hunt moment moments always talk made room rooms door doors held hold holds look looks "
            "looked past cut ended copies afar hands pulse headline vitals again recall presence opened otherwise given minded rests aside "
            "keeper house wind".split())
NAMED = re.compile(r"^(?:(?:struct|enum|union) (\w+) \{|#\s*define (\w+)|[a-z][\w \*]*?\b(\w+)\([^;{}]*\)\s*[;{])", re.M)

# Which files of src/ may include a library's headers. src/client/about.c asks each for its version.
LIBRARY_HEADERS = [
    (r"(n?curses|ncursesw/.*|term|panel|form|menu)\.h", ["src/tui/term/*", "src/client/about.c"]),
    (r"libwebsockets.*\.h", ["src/*net*.c", "src/client/about.c"]),
    (r"msgpack.*\.h", ["src/wire/*", "src/client/about.c"]),
    (r"sqlite3.*\.h", ["src/store/sql/*", "src/store/recording/*", "src/client/about.c"]),
    (r"(zlib|zconf)\.h", ["src/client/gzip.c", "src/client/about.c"]),
    (r"(histedit|editline/.*|readline/.*)\.h", ["src/cli/line.c", "src/client/about.c"]),
    (r"libunwind.*\.h", ["src/base/unwind_space.c", "src/client/about.c"]),
    (r"(elfutils/.*|gelf|libelf|dwarf|libiberty/.*|demangle)\.h", ["src/client/symbols/*", "src/client/about.c"]),
    (r"Python\.h", []),
]

# Calls that would end, print from or hang the job this code lives in.
INSIDE_THE_JOB = ["src/agent/", "src/flame/", "src/pystack/", "src/wire/", "src/store/ring/"]
FORBIDDEN_CALLS = [
    "abort", "exit", "_exit", "_Exit", "quick_exit", "assert", "printf", "vprintf", "puts", "putchar", "perror", "err",
    "errx", "warn", "warnx", "system", "popen", "fork", "sleep", "gets", "strcpy", "strcat", "sprintf", "vsprintf",
]
STANDARD_STREAMS = re.compile(r"\b(stdout|stderr|stdin)\b")

# Whatever the programs say goes through src/client/output.c, which makes it harmless for a terminal. The line editor is libedit's; the
# screens write to the terminal themselves, of cells that are made harmless one by one.
SPEAKING = ["src/cli/", "src/client/", "src/tui/"]
SPEAKERS = ["src/client/output.c", "src/cli/line.c", "src/tui/term/*"]
PRINTING = re.compile(r"(?<![\w.>])(v?f?printf|puts|fputs|putchar|fputc|putc|fwrite|perror|v?dprintf)\s*\(")

# Words and turns that a native reader stumbles over, and what to write instead: in comments and messages of src/, in documents and
# in docstrings. Text in backquotes is code.
DIALECT = [
    (r"oftener", "more often"),
    (r"in vain", "without success"),
    (r"for ever", "forever, without end"),
    (r"anew", "again"),
    (r"dear(?:er|ly)?", "expensive"),
    (r"would have had", "say what happens"),
    (r"(?:is|are|was|were|be|been|being) told(?! to\b| apart\b)", "is shown, is reported"),
    (r"no more(?=[.,;:)]|\Z)", "no longer, is gone"),
    (r"of (?:before|then)", "earlier, of that time"),
    (r"(?:all|both|everything|many|several|two|three|four|\d+)(?: \w+)? at once", "together, at a time"),
    (r"(?:is|are|was|were) not had|(?:to|can|could|cannot) be had", "is available, could not acquire"),
    (r"(?<!there\s)(?:is|are|was|were) no (?!longer\b|more\b|less\b|\w+er\b)\w+", "is not a"),
    (r"(?:comes?|came|coming) in(?=[.,;:)]|\Z| by\b| as\b| afterwards\b)", "connects, arrives"),
    (r"(?:is|are|was|were) there already", "exists"),
    (r", or not(?=[.;:)])", "toggle"),
    (r"doors?", "listener"),
    (r"(?:there|here|where)(?:of|upon|unto)|henceforth|hitherto|whence|thither|lest|thrice|till", "today's word"),
]
# The same for messages alone, which comments may still use.
MESSAGE_DIALECT = [
    (r"tells?(?! apart\b)|told", "show, report, say"),
    (r"(?:a|an|one|each|every|first|last|earlier|this|these|that|those|whose) looks?", "snapshot, sample"),
    (r"look(?:s|ed|ing)? (?:at|into)|looks", "read, sample, trace, check"),
    (r"may look", "has read-only access"),
    (r"arms?|armed", "start"),
    (r"(?:is|are|was|were) to be had", "is available"),
    (r"not any more|any more", "no longer"),
    (r"[,;] or not(?=\Z)", "toggle"),
    (r"(?:let|lets|letting) (?:\w+ )?go on|goes? on", "continue"),
    (r"whoever|nobody catches", "anyone who, uncaught"),
    (r"for want of", "for lack of"),
    (r"meanwhile", "in the meantime, while ..."),
    (r"has? a list", "lists them"),
    (r"(?:began|begun|begins?|begin) (?:another|again)", "start"),
    (r"(?:is|are) had|shall", "is available, should"),
    (r"(?:this|that|it) is no(?! \w+er\b| longer\b)", "not a"),
]
DIALECT_PATTERNS = [(re.compile(r"(?<![\w.-])(?:" + words.replace(" ", r"\s+") + r")(?!\w)", re.I), better) for words, better in DIALECT]
MESSAGE_PATTERNS = DIALECT_PATTERNS + [(re.compile(r"(?<![\w.-])(?:" + words.replace(" ", r"\s+") + r")(?!\w)", re.I), better)
                                       for words, better in MESSAGE_DIALECT]
CODE_IN_TEXT = re.compile(r"\b(?:SELECT|INSERT|CREATE|WHERE|ORDER BY|PRAGMA)\b|^(?:import|from|def|for|try|except) |</|\bexcept\b")
# The same for what users read first: README and the pages of docs/.
PAGE_DIALECT = [
    (r"(?:told|tells?|telling)(?! to\b| apart\b)", "report, show, record"),
    (r"says(?! no\b)", "shows, reports, has"),
    (r"(?:a|one|each|every|first|last|earlier|later|next|two|these|\d+) looks?(?! at| like| in| up| for)", "sample, snapshot"),
    (r"looking (?:took|takes|costs?|has|may)", "the overhead"),
]
PAGE_PATTERNS = DIALECT_PATTERNS + [(re.compile(r"(?<![\w.-])(?:" + words.replace(" ", r"\s+") + r")(?!\w)", re.I), better)
                                    for words, better in PAGE_DIALECT]
USERS_PAGES = re.compile(r"(?:README|CONTRIBUTING|CHANGELOG)\.md|docs/[\w-]+\.md")
PAGE_COLUMNS = 100
SENTENCE_WORDS = 25  # of README
# Where such words stay: a prefix of a path, and what may be found there.
DIALECT_ALLOWED = [
    ("docs/access.md", r"doors?"),   # written by `make access`; `doors` is a key of `status --json`
]

NO_LICENCE_LINE = ["*.md", "*.png", "LICENSE", "VERSION", "tests/*/golden/*", "tests/golden/*", "tests/fuzz/corpus/*", "*.json", "*.txt"]
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK"]) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home/\w+|Users)/")
DOCUMENTED_PATH = re.compile(r"`((?:src|tests|tools|docs|bench|examples|themes|mk|\.ci)/[\w./-]+|[A-Z][A-Za-z.]+\.md)`")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)")


class Findings:
    def __init__(self):
        self.lines = []

    def add(self, path, line, what):
        self.lines.append(f"{path}:{line}: {what}" if line else f"{path}: {what}")


def project_files():
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(f for f in set(listed.stdout.splitlines()) if os.path.isfile(os.path.join(ROOT, f)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def matches(path, patterns):
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def without_comments(text):
    """C text with comments and the insides of literals blanked, line by line the same."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        found = match.group(0)
        if found[0] in "\"'":
            return found[0] + " " * (len(found) - 2) + found[0]
        return re.sub(r"[^\n]", " ", found)

    return token.sub(blank, text)


def room_of(path):
    """The room of a path from src/: "sql" of client/sql/result.h, "entry" of agent/entry.c, "" of client/output.h."""
    folder, room = path.split("/")[:2]
    room = os.path.splitext(room)[0]
    return room if room in ROOMS.get(folder, []) or path.count("/") > 1 else ""


def room_may_include(path, other):
    """May that file include `other` of the same folder? A file that lies in no room knows none of them."""
    folder = path.split("/")[1]
    rooms = ["", *ROOMS.get(folder, [])]
    if folder not in ROOMS or not other.startswith(folder + "/"):
        return True
    return rooms.index(room_of(other)) <= rooms.index(room_of(path[4:]))


def check_includes(path, text, findings):
    folder = path.split("/")[1]
    for number, line in enumerate(text.splitlines(), 1):
        project = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        library = re.match(r"\s*#\s*include\s+<([^>]+)>", line)
        if project and "/" in project.group(1):
            other = project.group(1)
            allowed = [folder + "/"] + [a if "/" in a else a + "/" for a in MAY_INCLUDE[folder]]
            if not any(other.startswith(a) for a in allowed):
                findings.add(path, number, f"src/{folder} may not include {other}")
            if not room_may_include(path, other):
                findings.add(path, number, f"the rooms of src/{folder} lie upon each other ({', '.join(ROOMS[folder])}): {room_of(path[4:])} may not include {other}")
        elif project and project.group(1) not in ("version.h", "commit.h"):
            findings.add(path, number, f'write the path from src/: "{project.group(1)}"')
        elif library:
            for pattern, where in LIBRARY_HEADERS:
                if re.fullmatch(pattern, library.group(1)) and not matches(path, where):
                    findings.add(path, number, f"<{library.group(1)}> may only be included by {', '.join(where) or 'nothing in src'}")


def circles_of(includes):
    """Sets of files that reach each other, of {file: files that it includes}; by Tarjan."""
    index, low, stack, found = {}, {}, [], []

    def visit(file):
        index[file] = low[file] = len(index)
        stack.append(file)
        for other in includes.get(file, ()):
            if other not in index:
                visit(other)
            if other in stack:
                low[file] = min(low[file], low[other])
        if low[file] == index[file]:
            at = stack.index(file)
            found.append(tuple(sorted(stack[at:])))
            del stack[at:]
    for file in sorted(includes):
        if file not in index:
            visit(file)
    return [circle for circle in found if len(circle) > 1]


def check_circles(files, findings):
    for folder in ONE_WAY:
        includes = {}
        for path in files:
            if path.startswith(f"src/{folder}/") and path.endswith((".c", ".h")):
                own = path[4:-2]
                others = re.findall(rf'^#include "({folder}/[^"]+)\.h"', read(path), re.M)
                includes.setdefault(own, set()).update(other for other in others if other != own)
        for circle in circles_of(includes):
            if circle not in CIRCLES:
                findings.add(f"src/{circle[0]}.c", 0, "a circle of files: " + ", ".join(circle))


def check_structure(findings):
    """docs/dev/structure.md shows MAY_INCLUDE and ROOMS as they are."""
    path = "docs/dev/structure.md"
    text = read(path)
    includes = {folder: named.split() for folder, named in re.findall(r"^(\w+) *->(.*)$", text, re.M)}
    rooms = {folder: named.split() for folder, named in re.findall(r"^(\w+): +(\w.*)$", text, re.M)}
    if includes != {folder: [name.rstrip("/") for name in named] for folder, named in MAY_INCLUDE.items()}:
        findings.add(path, 0, "its arrows are not those of MAY_INCLUDE in tools/lint.py")
    if rooms != ROOMS:
        findings.add(path, 0, "its rooms are not those of ROOMS in tools/lint.py")


def check_names(path, code, findings):
    for word in VAGUE.intersection(re.split(r"[_.]", os.path.basename(path))):
        findings.add(path, 0, f"'{word}' says nothing in the name of a file")
    for match in NAMED.finditer(code):
        name = next(filter(None, match.groups()))
        for word in VAGUE.intersection(name.lower().split("_")):
            findings.add(path, code.count("\n", 0, match.start()) + 1, f"'{word}' says nothing in the name {name}")


def check_licence(path, text, findings):
    if matches(path, NO_LICENCE_LINE) or not text:
        return
    if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(text.splitlines()[:3]):
        findings.add(path, 1, "no SPDX-License-Identifier line")


def check_words(path, text, findings):
    for number, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line):
            findings.add(path, number, "a mark of unfinished work")
        if MACHINE_PATH.search(line) and not path.startswith("tests/"):
            findings.add(path, number, "a path of one machine")


def prose_of(path, text):
    """What people read in a file: (line, text) of comments, of a document, of docstrings; without what stands in backquotes."""
    def without_code(prose):
        return re.sub(r"```.*?```|`[^`\n]*`", lambda code: re.sub(r"[^\n]", "_", code.group(0)), prose, flags=re.S)

    if path.endswith((".c", ".h")):
        token = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
        for match in token.finditer(text):
            if match.group(0)[0] == "/":
                yield text.count("\n", 0, match.start()) + 1, without_code(re.sub(r"\n[ \t]*\*?[ \t]*", "\n", match.group(0)[2:-2].rstrip()))
    elif path.endswith(".md"):
        yield 1, without_code(text)
    elif path.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node, clean=False):
                yield node.body[0].value.lineno, without_code(ast.get_docstring(node, clean=False))


def messages_of(text):
    """Texts of C code that people may see: (line, text) of string literals with a space in them, those that follow each other joined.
    SQL, Python and the like are code."""
    literal = r'"(?:\\.|[^"\\\n])*"'
    run = re.compile(rf"/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\\n])'|{literal}(?:[\s\\]*(?:PRI\w+\s*)?{literal})*", re.S)
    for match in run.finditer(text):
        if match.group(0)[0] == '"':
            message = "".join(piece[1:-1] for piece in re.findall(literal, match.group(0)))
            prose = re.sub(r"\\[nt]", " ", message).replace('\\"', '"').strip()
            if " " in prose and not CODE_IN_TEXT.search(prose):
                yield text.count("\n", 0, match.start()) + 1, prose


def check_prose(path, line, prose, patterns, findings):
    """Finds dialect in what people read, whether it is a comment, a document or a message."""
    for pattern, better in patterns:
        for match in pattern.finditer(prose):
            words = " ".join(match.group(0).split())
            if not any(path.startswith(prefix) and re.fullmatch(allowed, words, re.I) for prefix, allowed in DIALECT_ALLOWED):
                findings.add(path, line + prose.count("\n", 0, match.start()), f"'{words}': write {better}")


def check_dialect(path, text, findings):
    for line, prose in prose_of(path, text):
        check_prose(path, line, prose, PAGE_PATTERNS if USERS_PAGES.fullmatch(path) else DIALECT_PATTERNS, findings)
    if path.startswith("src/") and path.endswith((".c", ".h", ".def")):
        for line, prose in messages_of(text):
            check_prose(path, line, prose, MESSAGE_PATTERNS, findings)


def check_page(path, text, findings):
    """Lines of a document as wide as a terminal; outputs that are quoted, comments and the tables for those who build it may be wider."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        wide_table = line.startswith("|") and path not in ("README.md",) and (path.startswith("docs/dev/") or path == "docs/access.md")
        quoted = (fenced or line.startswith("<!--")) and path != "README.md"
        if len(line) > PAGE_COLUMNS and not wide_table and not quoted:
            findings.add(path, number, f"a line of {len(line)} columns; {PAGE_COLUMNS} are allowed")


def check_sentences(path, text, findings):
    """Sentences that can be read at a first glance."""
    prose = re.sub(r"```.*?```|^\|.*?$|^#.*?$", lambda m: re.sub(r"[^\n]", "", m.group(0)), text, flags=re.S | re.M)
    prose = re.sub(r"`[^`]*`", "code", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", prose))
    start = 0
    for match in re.finditer(r"[.?!](?=\s)|\n\s*\n|\n- |\Z", prose):
        words = prose[start:match.start()].split()
        if len(words) > SENTENCE_WORDS:
            findings.add(path, prose.count("\n", 0, match.start()) + 1, f"a sentence of {len(words)} words: {' '.join(words[:6])} ...")
        start = match.end()


def anchors_of(text):
    """The names that GitHub gives headings."""
    titles = re.findall(r"^#+ (.+)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def check_links(path, text, findings):
    """A link within the project names a file that is there, and a heading that it has."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", lambda code: re.sub(r"[^\n]", "_", code.group(0)), text, flags=re.S)
    for match in LINK.finditer(prose):
        target = os.path.normpath(os.path.join(os.path.dirname(path), match.group(1))) if match.group(1) else path
        number = text.count("\n", 0, match.start()) + 1
        if not os.path.exists(os.path.join(ROOT, target)):
            findings.add(path, number, f"a link to {target}, which does not exist")
        elif match.group(2) and match.group(2) not in anchors_of(read(target)):
            findings.add(path, number, f"a link to #{match.group(2)} of {target}, which has no such heading")


def check_markdown(path, text, findings):
    check_documents(path, text, findings)
    check_links(path, text, findings)
    if path.startswith("docs/") or path == "README.md":
        check_page(path, text, findings)
    if path == "README.md":
        check_sentences(path, text, findings)


def check_python_parses(path, text, findings):
    try:
        ast.parse(text)
    except SyntaxError as error:
        # A test may carry Python of a newer version than the one that lints.
        findings.add(path, error.lineno or 0, f"not Python: {error.msg}")


def check_macros(path, code, findings):
    for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+\w+[^\n]*(?:\\\n[^\n]*)*", code, re.M):
        body = re.sub(r"\bdo\b|\bwhile\s*\(\s*0\s*\)", " ", match.group(0))
        if re.search(r"\b(return|goto|break|continue|if|for|while|switch)\b", body):
            findings.add(path, code[: match.start()].count("\n") + 1, "a macro with control flow")


def check_calls(path, code, findings):
    call = re.compile(r"(?<![\w.>])(" + "|".join(FORBIDDEN_CALLS) + r")\s*\(")
    for number, line in enumerate(code.splitlines(), 1):
        found = call.search(line)
        if found:
            findings.add(path, number, f"{found.group(1)}() may not be called inside a job")
        if STANDARD_STREAMS.search(line):
            findings.add(path, number, "the job's standard streams are not ours")


def check_printing(path, code, findings):
    for number, line in enumerate(code.splitlines(), 1):
        found = PRINTING.search(line)
        if found:
            findings.add(path, number, f"{found.group(1)}(): what people read goes through client/output.h")


def check_documents(path, text, findings):
    for number, line in enumerate(text.splitlines(), 1):
        for match in DOCUMENTED_PATH.finditer(line):
            named = match.group(1).rstrip(".")
            places = [named, os.path.join(os.path.dirname(path), named)]
            placeholder = re.search(r"[A-Z]{4,}(?!\.md)|\.\.\.", named) and not named.endswith(".md")
            if placeholder or any(os.path.exists(os.path.join(ROOT, p)) for p in places):
                continue
            findings.add(path, number, f"names {named}, which does not exist")


def check_header_alone(path, compiler, flags, findings):
    command = [compiler, *flags, "-Werror", "-fsyntax-only", "-x", "c", "-"]
    name = path[len("src/"):] if path.startswith("src/") else path
    done = subprocess.run(command, input=f'#include "{name}"\n', cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        findings.add(path, 0, "does not compile alone: " + (done.stderr.strip().splitlines() or ["?"])[0])


def check_format(files, findings):
    tool = shutil.which("clang-format")
    if not tool:
        print("lint: clang-format is not installed, formatting is not checked")
        return
    for start in range(0, len(files), 40):
        done = subprocess.run([tool, "--dry-run", "-Werror", *files[start : start + 40]], cwd=ROOT, capture_output=True, text=True)
        badly = {}
        for line in done.stderr.splitlines():
            match = re.match(r"([^:]+):(\d+):\d+: error:", line)
            if match:
                badly.setdefault(match.group(1), match.group(2))
        for path, line in badly.items():
            findings.add(path, line, "not formatted as .clang-format says (make format)")


# --- together ---------------------------------------------------------------------------------------------------

def check_c_file(path, text, findings):
    code = without_comments(text)
    check_macros(path, code, findings)
    if path.startswith("src/"):
        check_includes(path, text, findings)
        check_names(path, code, findings)
    if any(path.startswith(folder) for folder in INSIDE_THE_JOB):
        check_calls(path, code, findings)
    if any(path.startswith(folder) for folder in SPEAKING) and not matches(path, SPEAKERS):
        check_printing(path, code, findings)


def is_python(path, text):
    return path.endswith(".py") or text.startswith("#!/usr/bin/env python3")


def check_file(path, findings):
    text = read(path)
    check_licence(path, text, findings)
    if path.startswith("tests/fuzz/corpus/") or "/golden/" in path or path == "LICENSE":
        return
    check_words(path, text, findings)
    if path.endswith((".c", ".h")):
        check_c_file(path, text, findings)
    if is_python(path, text):
        check_python_parses(path, text, findings)
    if path.endswith(".md"):
        check_markdown(path, text, findings)
    if path.startswith(("src/", "docs/", "tools/")) or path.endswith((".md", ".py")):
        check_dialect(path, text, findings)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cc", default="gcc")
    parser.add_argument("--cflags", default="-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Isrc -Itests")
    args = parser.parse_args()

    findings = Findings()
    files = project_files()
    for path in files:
        check_file(path, findings)
    check_circles(files, findings)
    check_structure(findings)
    c_files = [f for f in files if f.endswith((".c", ".h"))]
    if c_files:
        check_format(c_files, findings)
    flags = [flag.replace('\\"', '"') for flag in args.cflags.split()]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        headers = [f for f in c_files if f.endswith(".h")]
        list(pool.map(lambda h: check_header_alone(h, args.cc, flags, findings), headers))

    for line in sorted(findings.lines):
        print(line)
    print(f"lint: {len(files)} files, {len(findings.lines)} findings")
    return 1 if findings.lines else 0


if __name__ == "__main__":
    sys.exit(main())
