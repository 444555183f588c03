"""Shows that no example of a public header is passed over, and that a broken one does not compile.

    python3 tests/headers/examples_test.py <root of the repository> <C++ compiler>
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import examples

ROOT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
COMPILER = sys.argv[2] if len(sys.argv) > 2 else "c++"

TOP = "#pragma once\n\nnamespace latchkey::inline v0 {\n\n"
BOTTOM = "\n}  // namespace latchkey::inline v0\n"
GOOD = ("/// A lamp.\n///\n///     Lamp lamp;\n///     lamp.light();\n"
        "class Lamp {\n public:\n  void light();\n};\n")
PRELUDE = "namespace reader {\nusing namespace latchkey;\n}\n"

# What each header is found guilty of.
BAD = [
    ("Lamp", "/// No example.\nclass Lamp {\n};\n"),
    ("Lamp", "/// The example names it only in a comment.\n///\n///     light();  // Lamp\n"
             "void light();\n\nclass Lamp {};\n"),
    ("Lamp", "class Lamp {};\n\n/// Another's example.\n///\n///     light();\nvoid light();\n"),
    ("Lamp", "enum class Lamp { kOn, kOff };\n"),
    ("Lamp", "/// Only another's example shows it.\nstruct Lamp {};\n\n"
             "/// Lights it.\n///\n///     light(Lamp());\nvoid light(Lamp lamp);\n"),
    ("Wick", GOOD + "\nenum class Wick { kLong, kShort };\n"),
    ("Lamp", "using Lamp = int;\n"),
    ("light", "[[nodiscard]] LATCHKEY_EXPORT int light(int how,\n"
              "                                        int often);\n"),
    ("light", "template <class Lamp>\nvoid light(Lamp lamp) {\n  lamp.on();\n}\n"),
    ("Lamp", "template <class T>\nclass [[nodiscard]] Lamp {\n};\n"),
    ("indented by 3", "///    Lamp lamp;\n" + GOOD),
    ("indented by 2", GOOD.replace("  void", "  ///   lamp.light();\n  void")),
    ("picture", "///     on ──► off\n///     burn();\n/// More.\n" + GOOD),
    ("fenced", "/// ```\n/// Lamp lamp;\n/// ```\n" + GOOD),
]

# Needs no example of its own.
FINE = [
    GOOD,
    GOOD + "\nclass Wick;\n",
    GOOD + "\ntemplate <>\nclass Lamp<void> {\n};\n",
    GOOD + "\nusing Lamps = int;\n\n/// Lights them.\n///\n///     light(Lamps());\n"
           "void light(Lamps lamps);\n",
    GOOD + "\nLamp& operator<<(Lamp& lamp, int how);\n",
    GOOD + "\nclass Lamp::Wick {\n};\n",
    GOOD + "\nnamespace detail {\n\nclass Wick {\n};\n\n}  // namespace detail\n",
    GOOD.replace("  void", "  class Wick {};\n  /// Now.\n  ///\n  ///     lamp.light();\n  void"),
]


def header(body: str) -> examples.Header:
    return examples.Header("include/latchkey/lamp.hpp", TOP + body + BOTTOM)


class ExamplesTest(unittest.TestCase):
    def test_what_has_no_example_is_reported_alone(self):
        for what, body in BAD:
            with self.subTest(body=body):
                problems = header(body).problems
                self.assertEqual(len([p for p in problems if what in p.what]), len(problems))
                self.assertGreater(len(problems), 0)

    def test_what_needs_none_passes(self):
        for body in FINE:
            with self.subTest(body=body):
                self.assertEqual(header(body).problems, [])

    def test_a_block_keeps_its_lines_and_their_numbers(self):
        found = header(GOOD.replace("light();\nclass", "light();\n///\n///     lamp.out();\nclass"))
        self.assertEqual([(b.line, b.lines) for b in found.examples],
                         [(7, ["Lamp lamp;", "lamp.light();", "", "lamp.out();"])])

    def test_prose_between_two_blocks_parts_them(self):
        found = header("///     one();\n/// And then:\n///     two();\n" + GOOD)
        self.assertEqual([b.lines[0] for b in found.examples], ["one();", "two();", "Lamp lamp;"])

    def test_a_picture_is_counted_and_not_compiled(self):
        found = header("/// How it burns.\n///\n///     on ──► off\nclass Lamp {};\n")
        self.assertEqual([b.is_picture for b in found.blocks], [True])
        self.assertEqual(found.examples, [])
        self.assertIn("Lamp has no example", found.problems[0].what)

    def test_no_indented_line_of_the_public_headers_is_passed_over(self):
        for found in examples.read(ROOT):
            with self.subTest(header=found.path):
                text = (ROOT / found.path).read_text(encoding="utf-8")
                indented = re.findall(r"^ *///  +(.*)$", text, re.MULTILINE)
                taken = [line.lstrip() for b in found.blocks for line in b.lines if line]
                self.assertEqual(taken, indented)
                self.assertEqual(found.problems, [])

    def test_every_example_becomes_a_function(self):
        headers = examples.read(ROOT)
        program = examples.program(headers, ROOT)
        count = sum(len(found.examples) for found in headers)
        self.assertGreater(count, len(headers))
        self.assertEqual(len(re.findall(r"\bexample_\d+\(\)", program)), count)


class BrokenExampleTest(unittest.TestCase):
    def compile(self, body: str) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for path, text in {"include/latchkey/lamp.hpp": TOP + body + BOTTOM,
                               "headers/prelude.hpp": PRELUDE}.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text, encoding="utf-8")
            source = root / "all.cpp"
            source.write_text(examples.program(examples.read(root), root), encoding="utf-8")
            return subprocess.run(
                [COMPILER, "-std=c++20", "-fsyntax-only", f"-I{root}", f"-I{root}/include", source],
                capture_output=True, text=True, check=False)

    def test_a_good_example_compiles(self):
        done = self.compile(GOOD)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_broken_one_fails_and_is_named_by_header_and_line(self):
        done = self.compile(GOOD.replace("lamp.light();\nclass", "lamp.shine();\nclass"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("include/latchkey/lamp.hpp:8:", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
