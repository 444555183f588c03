"""Fails on code that is in the wrong place or has the wrong form; rules.py holds the tables.

    python3 tests/tidy/tidy.py <root of the repository>

Prints one line for each finding: file, line, rule, what is wrong.
"""

import pathlib
import re
import sys
from typing import Iterator, NamedTuple

import rules

FOLDERS = (
    "include", "src", "apps", "tests", "interop", "fuzz", "examples", "bench", "cmake", "docs",
    "models",
)
CODE = (".cpp", ".hpp")
TEXT = CODE + (".txt", ".py", ".sh", ".cmake", ".in", ".md", ".json", ".yml", ".toml")


class Finding(NamedTuple):
    path: str
    line: int
    rule: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.what}"


class File:
    """One file of the tree, with its path as everybody writes it."""

    def __init__(self, root: pathlib.Path, path: pathlib.Path):
        self.path = path.relative_to(root).as_posix()
        self.parts = self.path.split("/")
        self.text = path.read_text(encoding="utf-8")
        self.lines = self.text.split("\n")
        if self.lines[-1] == "":
            self.lines.pop()

    @property
    def is_code(self) -> bool:
        return self.path.endswith(CODE)

    @property
    def is_cmake(self) -> bool:
        return self.path.endswith((".cmake", ".cmake.in", "CMakeLists.txt"))

    @property
    def is_test(self) -> bool:
        return self.parts[0] == "tests" or self.path.endswith("_test.cpp")

    @property
    def room(self) -> str:
        """The room under src/, or the top folder."""
        return self.parts[1] if self.parts[0] == "src" else self.parts[0]


def tree(root: pathlib.Path) -> list[File]:
    found = [path for path in root.iterdir() if path.is_file()]
    for folder in FOLDERS:
        found += [path for path in (root / folder).rglob("*") if path.is_file()]
    return [
        File(root, path)
        for path in sorted(found)
        if path.suffix in TEXT or path.name in ("CMakeLists.txt", "packages.txt", "dev")
    ]


# ---- Include arrows -----------------------------------------------------------------------------

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def check_arrows(file: File) -> Iterator[Finding]:
    if not file.is_code:
        return
    if file.parts[0] == "src" and file.room not in rules.ROOMS:
        yield Finding(file.path, 1, "arrows", f"src/{file.room} is not a room of rules.py")
        return
    for number, line in enumerate(file.lines, 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        check = our_include if match[1] == '"' else foreign_include
        wrong = check(file, match[2])
        if wrong:
            yield Finding(file.path, number, "arrows", wrong)


def our_include(file: File, name: str) -> str | None:
    """Why `#include "name"` is wrong, or None."""
    if name.startswith("latchkey/"):
        return None
    target = name.split("/")[0]
    if file.parts[0] == "include":
        return f'a public header may not include "{name}"'
    if file.parts[0] == "examples":
        return f'an example sees public headers only, not "{name}"'
    if target == "support" and (file.is_test or file.parts[0] == "bench"):
        return None
    suites = ("command", "differential", "integration", "interop", "scenario", "sim")
    if file.parts[0] == "tests" and target in suites:
        return None
    if file.parts[0] == "src":
        if target == file.room and "/" in name:
            return None
        if target not in rules.ROOMS:
            return f'write "room/file.hpp", not "{name}"'
        if target not in rules.ROOMS[file.room]:
            return f"{file.room} may not include {target}"
        return None
    if "/" in name and target not in rules.ROOMS and target != file.parts[0]:
        return f'"{name}" is in no room'
    return None


def foreign_include(file: File, name: str) -> str | None:
    """Why `#include <name>` is wrong, or None."""
    public = file.parts[0] == "include"
    pure = file.parts[0] == "src" and file.room in rules.PURE
    if name in rules.STANDARD:
        # A test of a pure room may read a file, but it needs no threads either.
        if pure and name in rules.IMPURE_HEADERS - ({"fstream", "filesystem", "random"}
                                                    if file.is_test else set()):
            return f"{file.room} is pure: no <{name}>"
        return None
    library = re.split(r"[/.]", name)[0]
    if library in rules.LIBRARIES:
        places = {file.room, file.path} | ({"unit tests"} if file.is_test else set())
        if places & rules.LIBRARIES[library]:
            return None
        return f"{file.room} may not name {library}"
    if library in rules.SYSTEM_FOLDERS or re.fullmatch(r"[a-z0-9_]+\.h", name):
        if public or pure:
            return f"only the standard library here, not <{name}>"
        return None
    return f"<{name}> is of no library in rules.py"


# ---- Size and form ------------------------------------------------------------------------------


def check_size(file: File) -> Iterator[Finding]:
    limit = None
    if file.is_code or file.path.endswith(".py"):
        limit = rules.MAX_TEST_LINES if file.is_test else rules.MAX_SOURCE_LINES
    elif file.path == "CMakeLists.txt":
        limit = rules.MAX_ROOT_CMAKE_LINES
    if limit and len(file.lines) > limit:
        yield Finding(file.path, limit + 1, "size", f"{len(file.lines)} lines, limit {limit}")


def check_columns(file: File) -> Iterator[Finding]:
    if file.path.endswith((".md", ".json", ".txt")):
        return
    for number, line in enumerate(file.lines, 1):
        if len(line) > rules.MAX_COLUMNS:
            yield Finding(file.path, number, "columns",
                          f"{len(line)} columns, limit {rules.MAX_COLUMNS}")


def check_whitespace(file: File) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        if line != line.rstrip():
            yield Finding(file.path, number, "whitespace", "trailing whitespace")
        if "\t" in line:
            yield Finding(file.path, number, "whitespace", "tab")
    if file.text and not file.text.endswith("\n"):
        yield Finding(file.path, len(file.lines), "whitespace", "no newline at the end")


def check_pragma_once(file: File) -> Iterator[Finding]:
    if file.path.endswith(".hpp") and "#pragma once" not in file.lines[:1]:
        yield Finding(file.path, 1, "pragma-once", "a header begins with #pragma once")


def check_glob(file: File) -> Iterator[Finding]:
    if not file.is_cmake:
        return
    for number, line in enumerate(file.lines, 1):
        if re.search(r"\bfile\s*\(\s*GLOB|\baux_source_directory\b", line, re.IGNORECASE):
            yield Finding(file.path, number, "glob", "list the files")


BANNED = re.compile(
    r"\b(DISABLED_\w*|GTEST_SKIP|sleep_for|sleep_until|nanosleep|clock_nanosleep|usleep)\b"
    r"|(?<![\w.>])(sleep)\s*\(")


def check_banned(file: File) -> Iterator[Finding]:
    if not file.is_code:
        return
    for number, line in enumerate(strip(file.text).split("\n"), 1):
        for match in BANNED.finditer(line):
            yield Finding(file.path, number, "banned", f"no {match[1] or match[2]} here")


def check_todo(file: File) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        if re.search(r"\b(TO" r"DO|FIX" r"ME)\b(?!\(#\d+\))", line):
            yield Finding(file.path, number, "todo", "name the issue: TO" "DO(#12)")


def strip(text: str) -> str:
    """The code without comments, literals and preprocessor lines; line numbers stay."""

    def blank(match: re.Match) -> str:
        return re.sub(r"[^\n]+", " ", match[0])

    text = re.sub(
        r'R"([^(\s]*)\(.*?\)\1"'            # raw strings
        r'|"(?:\\.|[^"\\\n])*"'             # strings
        r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"  # characters, not digit separators
        r"|//[^\n]*|/\*.*?\*/",
        blank, text, flags=re.DOTALL)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.MULTILINE)


CONTAINER = re.compile(r"^(?:(?:inline|export|typedef|template\s*<.*>)\s*)*"
                       r"(?:namespace|class|struct|union|enum|extern|concept)\b", re.DOTALL)


def functions(text: str) -> Iterator[tuple[int, int]]:
    """First and last line of every function body with its head. Matches braces, not grammar."""
    code = strip(text)
    line = 1
    head, head_line = "", 1
    depth = 0         # of braces inside the function, 0 outside of any
    start = 0
    for char in code:
        if char == "\n":
            line += 1
        if depth:
            depth += {"{": 1, "}": -1}.get(char, 0)
            if depth == 0:
                yield start, line
                head = ""
        elif char == "{":
            last = head.rstrip()[-1:]
            if ")" in head and last not in ("=", ",", "(") and not CONTAINER.match(head.strip()):
                depth, start = 1, head_line
            head = ""
        elif char in ";}":
            head = ""
        else:
            if not head.strip():
                head, head_line = "", line
            head += char
            if re.fullmatch(r"\s*(public|private|protected):", head):
                head = ""


def check_functions(file: File) -> Iterator[Finding]:
    if not file.is_code:
        return
    for start, end in functions(file.text):
        length = end - start + 1
        if length > rules.MAX_FUNCTION_LINES:
            yield Finding(file.path, start, "function",
                          f"{length} lines, limit {rules.MAX_FUNCTION_LINES}")


# ---- The whole tree -----------------------------------------------------------------------------


def check_listed(files: list[File]) -> Iterator[Finding]:
    """A source or public header that no CMakeLists.txt names is built and tested by nobody."""
    lists = {file.path: file.text for file in files if file.path.endswith("CMakeLists.txt")}
    for file in files:
        if not file.is_code or (file.path.endswith(".hpp") and file.parts[0] != "include"):
            continue
        for depth in range(len(file.parts) - 1, 0, -1):
            text = lists.get("/".join(file.parts[:depth] + ["CMakeLists.txt"]))
            if text is not None:
                break
        else:
            text, depth = "", 0
        name = "/".join(file.parts[depth:])
        stem = name.rsplit(".", 1)[0]
        fuzzer = f"latchkey_fuzz({stem.removesuffix('_fuzz')})"
        if (fuzzer not in text and
                not re.search(rf"(?<![\w/.]){re.escape(stem)}(\.[ch]pp)?(?![\w/.])", text)):
            yield Finding(file.path, 1, "listed", "no CMakeLists.txt names this file")


NAMESPACE = re.compile(r"namespace\s*([\w:]*)\s*$")
TYPE = re.compile(r"(?:template\s*)?(?:class|struct|enum\s+class|enum|union)\s+(\w+)")


def unnamed(text: str) -> Iterator[tuple[int, str]]:
    """The lines and names of what a file declares in unnamed namespaces, outer namespace first."""
    stack: list[str] = []  # namespaces, or "" for any other brace
    head, line, head_line = "", 1, 1
    for char in strip(text):
        if char == "\n":
            line += 1
        if char not in "{};":
            if not head.strip():
                head_line = line
            head += char
            continue
        named = "/" in "".join(stack[-1:]) or any(space.startswith("/") for space in stack)
        if named and "" not in stack and char != "}" and not NAMESPACE.search(head):
            name = declared(head)
            if name:
                yield head_line, "::".join([space for space in stack if space != "/"] + [name])
        if char == "{":
            match = NAMESPACE.search(head)
            stack.append((match[1] or "/") if match and "" not in stack else "")
        elif char == "}" and stack:
            stack.pop()
        head = ""


def declared(head: str) -> str | None:
    """The name of the type, function or constant that begins with `head`, or None."""
    head = re.sub(r"\[\[.*?\]\]", "", head).strip()
    while "<" in head and re.search(r"<[^<>]*>", head):
        head = re.sub(r"<[^<>]*>", "", head)
    if not re.match(r"[a-z]|[A-Z]\w*[a-z]", head) or re.match(r"using\b|static_assert\b", head):
        return None  # Also macros, and what follows an initializer.
    match = TYPE.match(head)
    if match:
        return match[1]
    if "(" in head.split("=")[0]:
        match = re.search(r"([\w:~]+)\s*\(", head)
        return match[1] if match and "::" not in match[1] else None
    match = re.search(r"\s\W*([A-Za-z_]\w*)\s*(?:\[\w*\]\s*)?$", head.split("=")[0])
    return match[1] if match else None


def compiled_with(file: File) -> str:
    """What the file may be compiled together with: the sources of one target."""
    folder = "/".join(file.parts[:-1])
    if folder.startswith("tests/inte"):
        return "tests/integration and tests/interop"
    if not file.path.endswith("_test.cpp"):
        return folder
    return "unit tests" if folder.startswith("src/") else folder + " tests"


def check_unnamed(files: list[File]) -> Iterator[Finding]:
    """Sources of a target are compiled as one, and the compiler would take the other one's name."""
    seen: dict[tuple[str, str], str] = {}
    for file in files:
        if not file.path.endswith(".cpp") or re.search(
                r"^(int main|extern \"C\" int LLVMFuzzer\w+)\(", file.text, re.MULTILINE):
            continue
        own = set()
        for line, name in unnamed(file.text):
            key = (compiled_with(file), name)
            other = seen.setdefault(key, file.path)
            if other != file.path and name not in own:
                yield Finding(file.path, line, "unnamed", f"{other} has a {name} as well")
            own.add(name)


QUOTE = re.compile(r"<!-- quote: (\S+) -->\n```\w*\n(.*?)```", re.DOTALL)


def check_quotes(files: list[File]) -> Iterator[Finding]:
    """What a page quotes is what the tests compile."""
    texts = {file.path: file.text for file in files}
    for file in files:
        if not file.path.endswith(".md"):
            continue
        for match in QUOTE.finditer(file.text):
            if texts.get(match[1]) != match[2]:
                line = file.text.count("\n", 0, match.start()) + 1
                yield Finding(file.path, line, "quote", f"differs from {match[1]}")


HAZARD = re.compile(r"^\| (H\d+) [^|]*\|([^|]*)\|$", re.MULTILINE)
GLUED = re.compile(r"(H\d+_)*H\d+[A-Za-z]")
TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)")


def check_hazards(files: list[File]) -> Iterator[Finding]:
    """docs/hazards.md names tests that exist, or says why there is none."""
    for file in files:
        for match in TEST.finditer(file.text) if file.is_code else ():
            if GLUED.match(match[2]):
                line = file.text.count("\n", 0, match.start()) + 1
                yield Finding(file.path, line, "hazards", f"an id ends with _ in {match[2]}")
    tables = [file for file in files if file.path == rules.HAZARD_TABLE]
    if not tables:
        return
    table = tables[0]
    tests = {f"{match[1]}.{match[2]}" for file in files if file.is_code
             for match in TEST.finditer(file.text)}
    scenarios = {file.path for file in files if file.path.startswith("tests/scenario/")}
    seen = []
    excused = 0
    for match in HAZARD.finditer(table.text):
        line = table.text.count("\n", 0, match.start()) + 1
        seen.append(match[1])
        named = re.findall(r"`([^`]+)`", match[2])
        for name in named:
            if name not in tests and name not in scenarios:
                yield Finding(table.path, line, "hazards", f"{match[1]}: there is no test {name}")
        if not named:
            excused += 1
    if excused > rules.MAX_EXCUSED_HAZARDS:
        yield Finding(table.path, 1, "hazards", f"{excused} rows without a test")
    for missing in sorted(set(rules.HAZARDS) - set(seen)):
        yield Finding(table.path, 1, "hazards", f"{missing} is missing")


PER_TREE = (check_listed, check_quotes, check_hazards, check_unnamed)
PER_FILE = (check_arrows, check_size, check_columns, check_whitespace, check_pragma_once,
            check_glob, check_banned, check_todo, check_functions)
RULES = {"arrows", "size", "columns", "whitespace", "pragma-once", "glob", "banned", "todo",
         "function", "listed", "quote", "hazards", "unnamed"}


def check(root: pathlib.Path) -> list[Finding]:
    files = tree(root)
    findings = [finding for rule in PER_TREE for finding in rule(files)]
    for file in files:
        for rule in PER_FILE:
            findings += rule(file)
    return sorted(findings)


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    root = pathlib.Path(sys.argv[1])
    findings = check(root)
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
