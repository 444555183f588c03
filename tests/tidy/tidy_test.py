"""Shows that every rule of tidy.py fires on a small bad tree, and none on a good one."""

import pathlib
import tempfile
import unittest

import rules
import tidy


def hazard_table(**other: str) -> str:
    rows = {hazard: "`Frame.IsCut`" for hazard in rules.HAZARDS} | other
    return "".join(f"| {hazard} some danger | {tests} |\n" for hazard, tests in rows.items())


GOOD = {
    "CMakeLists.txt": "project(latchkey)\n",
    "include/CMakeLists.txt": "target_sources(latchkey latchkey/mutex.hpp latchkey/asio.hpp)\n",
    "include/latchkey/mutex.hpp": "#pragma once\n\n#include <string>\n\n"
                                  '#include "latchkey/asio.hpp"\n',
    "include/latchkey/asio.hpp": "#pragma once\n\n#include <asio.hpp>\n",
    "src/wire/CMakeLists.txt": "latchkey_room(wire SOURCES frame.cpp TESTS frame_test.cpp)\n",
    "src/wire/frame.hpp": "#pragma once\n\n#include <chrono>\n",
    "src/wire/frame.cpp": '#include "wire/frame.hpp"\n\n#include "base/log.hpp"\n'
                          '#include "latchkey/mutex.hpp"\n\nconst char* k = "sleep_for";\n',
    "src/wire/frame_test.cpp": '#include <gtest/gtest.h>\n\n#include "wire/frame.hpp"\n\n'
                               "TEST(Frame, IsCut) {}\n",
    "src/net/CMakeLists.txt": "latchkey_room(net SOURCES tcp.cpp)\n",
    "src/net/tcp.cpp": "#include <asio/ip/tcp.hpp>\n#include <openssl/ssl.h>\n"
                       '#include <unistd.h>\n\n#include "session/machine.hpp"\n',
    "apps/latchkey/CMakeLists.txt": "latchkey_program(latchkey SOURCES main.cpp)\n",
    "apps/latchkey/main.cpp": '#include <CLI/CLI.hpp>\n\n#include "net/tcp.hpp"\n',
    "examples/CMakeLists.txt": "set(examples quickstart)\n",
    "fuzz/CMakeLists.txt": "latchkey_fuzz(frame)\n",
    "fuzz/frame_fuzz.cpp": "int x;\n",
    "docs/hazards.md": hazard_table(H05="see `Frame.IsCut`", H07="Cannot happen: no such thing."),
    "README.md": "<!-- quote: fuzz/frame_fuzz.cpp -->\n```cpp\nint x;\n```\n",
    "examples/quickstart.cpp": '#include "latchkey/mutex.hpp"\n\n// TO' 'DO(#7): shorter.\n',
}


def lines(count: int) -> str:
    return "int x;\n" * count


def function(body: int, head: str = "int f(int a)") -> str:
    return f"{head} {{\n" + "  a();\n" * body + "}\n"


UNNAMED = "namespace wire {{\nnamespace {{\n\n{}\n\n}}  // namespace\n}}  // namespace wire\n"

# The rule that must fire, and what to put on top of the good tree.
BAD = [
    ("arrows", {"src/wire/frame.cpp": '#include "session/machine.hpp"\n'}),
    ("arrows", {"src/wire/frame.cpp": '#include "net/tcp.hpp"\n'}),
    ("arrows", {"src/net/tcp.cpp": '#include "wire/frame.hpp"\n'}),
    ("arrows", {"src/wire/frame.cpp": '#include "frame.hpp"\n'}),
    ("arrows", {"src/wire/frame.cpp": "#include <asio.hpp>\n"}),
    ("arrows", {"src/wire/frame.cpp": "#include <openssl/ssl.h>\n"}),
    ("arrows", {"src/wire/frame.cpp": "#include <thread>\n"}),
    ("arrows", {"src/wire/frame.cpp": "  #  include <unistd.h>\n"}),
    ("arrows", {"src/wire/frame.cpp": "#include <gtest/gtest.h>\n"}),
    ("arrows", {"src/wire/frame.cpp": "#include <boost/any.hpp>\n"}),
    ("arrows", {"src/wire/frame_test.cpp": "#include <mutex>\n"}),
    ("arrows", {"src/wire/frame_test.cpp": '#include "net/tcp.hpp"\n'}),
    ("arrows", {"src/net/tcp.cpp": "#include <fmt/format.h>\n"}),
    ("arrows", {"src/net/tcp.cpp": "#include <CLI/CLI.hpp>\n"}),
    ("arrows", {"apps/latchkey/main.cpp": "#include <asio.hpp>\n"}),
    ("arrows", {"include/latchkey/mutex.hpp": "#pragma once\n#include <asio.hpp>\n"}),
    ("arrows", {"include/latchkey/mutex.hpp": '#pragma once\n#include "wire/frame.hpp"\n'}),
    ("arrows", {"include/latchkey/mutex.hpp": "#pragma once\n#include <unistd.h>\n"}),
    ("arrows", {"examples/quickstart.cpp": '#include "wire/frame.hpp"\n'}),
    ("arrows", {"src/misc/CMakeLists.txt": "x.cpp\n", "src/misc/x.cpp": "int x;\n"}),
    ("size", {"src/wire/frame.cpp": lines(601)}),
    ("size", {"src/wire/frame_test.cpp": lines(801)}),
    ("size", {"CMakeLists.txt": "# Nothing.\n" * 121}),
    ("columns", {"src/wire/frame.cpp": "// " + "x" * 98 + "\n"}),
    ("columns", {"cmake/Some.cmake": "# " + "x" * 99 + "\n"}),
    ("whitespace", {"src/wire/frame.cpp": "int x; \n"}),
    ("whitespace", {"src/wire/frame.cpp": "\tint x;\n"}),
    ("whitespace", {"README.md": "no newline"}),
    ("pragma-once", {"src/wire/frame.hpp": "#ifndef FRAME\n#define FRAME\n#endif\n"}),
    ("glob", {"src/wire/CMakeLists.txt": "# frame frame_test\nfile(GLOB x *.cpp)\n"}),
    ("glob", {"cmake/Some.cmake": "file( glob_recurse x *.cpp)\n"}),
    ("banned", {"src/wire/frame_test.cpp": "TEST(A, DISABLED_B) {}\n"}),
    ("banned", {"src/wire/frame_test.cpp": "TEST(A, B) { GTEST_SKIP(); }\n"}),
    ("banned", {"src/net/tcp.cpp": "void f() { std::this_thread::sleep_for(1s); }\n"}),
    ("banned", {"apps/latchkey/main.cpp": "void f() { std::this_thread::sleep_until(t); }\n"}),
    ("banned", {"src/net/tcp.cpp": "void f() { ::sleep(1); }\n"}),
    ("todo", {"src/wire/frame.cpp": "// TO" "DO: later.\n"}),
    ("todo", {"README.md": "FIX" "ME\n"}),
    ("function", {"src/wire/frame.cpp": function(69)}),
    ("function", {"src/wire/frame.cpp": "namespace a {\nclass B {\n public:\n"
                                        + function(69, "int g() const noexcept override")
                                        + "};\n}\n"}),
    ("function", {"src/wire/frame.cpp": function(69, "A::A(int a)\n    : a_(a), b_(a)")}),
    ("function", {"src/wire/frame_test.cpp": function(69, "TEST_F(A, B)")}),
    ("unnamed", {"src/wire/CMakeLists.txt": "frame.cpp\nframe_test.cpp\na.cpp\nb.cpp\n",
                 "src/wire/a.cpp": UNNAMED.format("int part(int a) { return a; }"),
                 "src/wire/b.cpp": UNNAMED.format("int part(double a) { return 1; }")}),
    ("unnamed", {"src/wire/CMakeLists.txt": "frame.cpp\nframe_test.cpp\na.cpp\nb.cpp\n",
                 "src/wire/a.cpp": UNNAMED.format("constexpr int kMost = 3 * f(2);"),
                 "src/wire/b.cpp": UNNAMED.format("class kMost {};")}),
    ("listed", {"src/wire/jute.cpp": "int x;\n"}),
    ("listed", {"include/latchkey/lease.hpp": "#pragma once\n"}),
    ("listed", {"tests/scenario/run.cpp": "int x;\n"}),
    ("listed", {"fuzz/name_fuzz.cpp": "int x;\n"}),
    ("quote", {"README.md": "<!-- quote: fuzz/frame_fuzz.cpp -->\n```cpp\nint y;\n```\n"}),
    ("hazards", {"docs/hazards.md": hazard_table(H05="`Frame.IsGone`")}),
    ("hazards", {"src/wire/frame_test.cpp": "TEST(Frame, H05IsCut) {}\n"}),
    ("hazards", {"docs/hazards.md": hazard_table().replace("| H72", "| X72")}),
    ("hazards", {"docs/hazards.md": hazard_table(
        **{f"H{number:02}": "Cannot happen." for number in range(1, 12)})}),
]

# Looks like a violation, and is none.
FINE = [
    {"src/wire/frame.cpp": function(68)},
    {"src/wire/frame.cpp": "namespace a {\n" + "int x(int a) { return a; }\n" * 90 + "}\n"},
    {"src/wire/frame.cpp": "constexpr int kTable[] = {\n" + "    f(1),\n" * 90 + "};\n"},
    {"src/wire/frame.cpp": 'const char* k = "{ ( } sleep_for";  // DISABLED_ {\n' * 90},
    {"src/wire/frame.cpp": 'auto k = R"({ "\n' + "(){\n" * 90 + ')";\nint big = 1\'000\'000;\n'},
    {"src/wire/frame.cpp": "void f() { machine.sleep(1); }\n"},
    {"src/wire/frame_test.cpp": '#include <fstream>\n\n#include "support/clock.hpp"\n'},
    {"src/wire/frame_test.cpp": lines(800)},
]


class TidyTest(unittest.TestCase):
    def findings(self, changes: dict[str, str]) -> list[tidy.Finding]:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            files = {**GOOD, **changes}
            if "src/wire/frame_test.cpp" in changes:
                # The table's test has to be somewhere.
                files["tests/CMakeLists.txt"] = "other_test.cpp\n"
                files["tests/other_test.cpp"] = "TEST(Frame, IsCut) {}\n"
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            return tidy.check(root)

    def test_a_good_tree_passes(self):
        self.assertEqual(self.findings({}), [])

    def test_each_bad_tree_is_caught_by_its_rule_alone(self):
        for rule, changes in BAD:
            with self.subTest(rule=rule, changes=changes):
                findings = self.findings(changes)
                self.assertEqual({finding.rule for finding in findings}, {rule}, findings)
                self.assertIn(findings[0].path, changes)

    def test_what_only_looks_bad_passes(self):
        for changes in FINE:
            with self.subTest(changes=changes):
                self.assertEqual(self.findings(changes), [])

    def test_every_rule_has_a_bad_tree(self):
        self.assertEqual({rule for rule, _ in BAD}, tidy.RULES)


if __name__ == "__main__":
    unittest.main()
