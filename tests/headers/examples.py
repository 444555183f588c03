"""Makes one program of all the examples in the public headers, so that the compiler reads them.

    python3 tests/headers/examples.py <root of the repository> <file to write>

An example is a block of doc comment lines that are indented by four:

    ///     auto lease = mutex.lock(deadline_in(5s));

Each becomes the body of a function of its own, after prelude.hpp, which declares what examples take
for granted. A block with lines drawn in it is a picture and is only counted. Fails on a block that
is neither, on a public type without an example in its own comment, and on any other public name
that no example of its header shows. Prints what it found.
"""

import pathlib
import re
import sys
from typing import Iterator, NamedTuple

PRELUDE = "headers/prelude.hpp"
INDENT = 4
PICTURE = re.compile("[\u2500-\u257f\u25a0-\u25ff]")  # box drawing, geometric shapes
COMMENT = re.compile(r"^\s*///(?!<)(?: (.*))?$")
NAMESPACE = re.compile(r"^namespace ([\w:]+(?: v0)?) \{$")
PUBLIC = "latchkey::inline v0"
TYPE = re.compile(r"^(?:template <.*>\s*)?(?:enum class|enum|class|struct)\s+"
                  r"(?:LATCHKEY_EXPORT\s+|\[\[nodiscard\]\]\s+)*([\w:]+)")
ALIAS = re.compile(r"^using (\w+) =")
FUNCTION = re.compile(r"(\w+|operator[^(]*)\(")


class Block(NamedTuple):
    header: str
    line: int  # of its first line
    lines: list[str]

    @property
    def is_picture(self) -> bool:
        return any(PICTURE.search(line) for line in self.lines)


class Problem(NamedTuple):
    header: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.header}:{self.line}: {self.what}"


class Header:
    """One public header: its blocks, its public names, and what is wrong with them."""

    def __init__(self, path: str, text: str):
        self.path = path
        self.lines = text.split("\n")
        self.blocks: list[Block] = []
        self.problems: list[Problem] = []
        self.find_blocks()
        self.find_unshown()

    @property
    def examples(self) -> list[Block]:
        return [block for block in self.blocks if not block.is_picture]

    def complain(self, line: int, what: str):
        self.problems.append(Problem(self.path, line, what))

    def find_blocks(self):
        block: Block | None = None
        for number, line in enumerate(self.lines, 1):
            match = COMMENT.match(line)
            text = (match[1] or "") if match else None
            indent = len(text) - len(text.lstrip()) if text else 0
            if text is None or (text and indent < INDENT):
                block = None
            if text is None or not text:
                continue
            if "```" in text or "@code" in text or "\\code" in text:
                self.complain(number, f"an example is indented by {INDENT}, not fenced")
            elif 0 < indent < INDENT:
                self.complain(number, f"indented by {indent}: prose by 0, an example by {INDENT}")
            elif indent >= INDENT:
                if block is None:
                    block = Block(self.path, number, [])
                    self.blocks.append(block)
                # Empty lines inside a block keep the numbers right.
                block.lines.extend([""] * (number - block.line - len(block.lines)))
                block.lines.append(text[INDENT:])

        for block in self.blocks:
            if block.is_picture and any(";" in line for line in block.lines):
                self.complain(block.line, "a picture with code in it: part them by a line of prose")

    def find_unshown(self):
        code = [line.split("//")[0] for example in self.examples for line in example.lines]
        shown = set(re.findall(r"\w+", " ".join(code)))
        types = set()  # Those with an example: a specialization needs none.
        for name, is_type, first, last in public_names(self.lines):
            own = any(first <= example.line < last for example in self.examples)
            if own and is_type:
                types.add(name)
            elif is_type and name not in types:
                self.complain(last, f"{name} has no example: a type needs one of its own")
            elif not own and name not in shown:
                self.complain(last, f"{name} has no example, and no other in this header shows it")


def public_names(lines: list[str]) -> Iterator[tuple[str, bool, int, int]]:
    """Every name declared in latchkey itself: the name, whether it is a class, struct or enum, the
    first line of its comment, its line.

    Public headers are laid out by clang-format: what is declared in a namespace starts a line.
    """
    space = ""
    comment = 0  # The first line of the comment above, 0 if there is none.
    head: list[str] = []
    for number, line in enumerate(lines, 1):
        if match := NAMESPACE.match(line):
            space = match[1] if space != PUBLIC else "detail"
        elif line.startswith("}  // namespace"):
            space = PUBLIC if space == "detail" else ""
        elif space == PUBLIC and line.startswith("///"):
            comment = comment or number
        elif space == PUBLIC and (head or re.match(r"[a-zA-Z\[]", line)):
            head.append(line.strip())
            text = " ".join(head)
            if not re.search(r"[;{]$|[;{]\s*//", line) and "{" not in line:
                continue
            if name := declared(text):
                yield name, bool(TYPE.match(text)), comment or number, number
            head, comment = [], 0
        elif not line.strip():
            comment = 0


def declared(text: str) -> str | None:
    """The name that a declaration at namespace scope adds; nothing if it adds none."""
    if match := ALIAS.match(text):
        return match[1]
    if match := TYPE.match(text):
        forward = text.endswith(";") and "{" not in text
        return None if forward or "::" in match[1] else match[1]
    match = FUNCTION.search(re.sub(r"^template <.*?> ", "", text))
    return match[1] if match and not match[1].startswith("operator") else None


def read(root: pathlib.Path) -> list[Header]:
    folder = root / "include"
    return [Header(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
            for path in sorted(folder.rglob("*.hpp"))]


def function(number: int, block: Block, root: pathlib.Path) -> str:
    waits = any("co_await" in line for line in block.lines)
    asio = any("asio::" in line for line in block.lines)
    result = "auto" if not waits else "asio::awaitable<void>" if asio else "Coroutine"
    body = "\n".join(block.lines)
    return (f"[[maybe_unused]] {result} example_{number}() {{\n"
            f'#line {block.line} "{root / block.header}"\n{body}\n}}\n')


def program(headers: list[Header], root: pathlib.Path) -> str:
    examples = [example for header in headers for example in header.examples]
    text = "".join(f'#include "{header.path.removeprefix("include/")}"\n' for header in headers)
    text += f'#include "{PRELUDE}"\n\nnamespace reader {{\n'
    for number, example in enumerate(examples, 1):
        text += "\n" + function(number, example, root)
    return text + "\n}  // namespace reader\n"


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    root = pathlib.Path(sys.argv[1])
    headers = read(root)
    problems = [problem for header in headers for problem in header.problems]
    for problem in problems:
        print(problem)
    target = pathlib.Path(sys.argv[2])
    text = program(headers, root)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")
    blocks = [block for header in headers for block in header.blocks]
    pictures = sum(block.is_picture for block in blocks)
    print(f"{len(blocks) - pictures} examples and {pictures} pictures in {len(headers)} headers, "
          f"{len(problems)} problems")
    return 1 if problems or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
