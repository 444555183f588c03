"""The pure parts of the benchmark: figures, goals, table and plots, from results made up here."""

from __future__ import annotations

import pathlib
import sys
import tempfile
import unittest
from xml.etree import ElementTree

import goals
import plots
import report
from results import QUANTILES, Results, measures


def raw(ops: int, microseconds: float = 100.0, **more) -> dict:
    return {"ops": ops, "seconds": 2, "cpu_s": 0.5,
            "quantiles_us": [microseconds + point for point in QUANTILES], **more}


def results(**rounds: list[dict]) -> Results:
    found = Results()
    for key, all_rounds in rounds.items():
        for each in all_rounds:
            found.add(key.replace("__", "/"), each)
    return found


class Measures(unittest.TestCase):
    def test_are_for_each_pair(self):
        found = measures(raw(1000, server_cpu_s=0.25, requests=3000, bytes_up=5000,
                             bytes_down=7000, events=500, rss_kb=2048))
        self.assertEqual(
            {name: found[name] for name in ("per_s", "cpu_us", "server_cpu_us", "requests",
                                            "bytes", "events", "rss_mb", "p50_us", "p99_us")},
            {"per_s": 500, "cpu_us": 500, "server_cpu_us": 250, "requests": 3, "bytes": 12,
             "events": 0.5, "rss_mb": 2, "p50_us": 600, "p99_us": 1090})

    def test_are_left_out_where_nothing_was_counted(self):
        self.assertEqual(measures({"take_over_ms": 7, "ops": 0}), {"take_over_ms": 7})


class TheTable(unittest.TestCase):
    def test_has_medians_with_the_smallest_and_the_largest(self):
        found = results(W1__latchkey__apache=[raw(100), raw(400), raw(200)])
        self.assertEqual(report.cell(found, "W1/latchkey/apache", "per_s", "{:.0f}"),
                         "100 (50 to 200)")

    def test_compares_memory_by_memory(self):
        found = results(W8__latchkey__apache=[{"ops": 1, "rss_kb": 1024}],
                        W8__c__apache=[{"ops": 1, "rss_kb": 512}])
        self.assertIn("| c, apache | 0.5 | 0.50 |", report.section(found, "W8"))

    def test_is_the_same_when_it_is_read_again(self):
        found = results(W4__latchkey__apache=[raw(100, requests=300, bytes_up=1, bytes_down=2,
                                                  events=100, rss_kb=1024, server_cpu_s=1)])
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "results.json"
            report.write_json(found, {}, {}, {}, file)
            again = Results()
            again.raw = report.read_json(file)["rounds"]
        self.assertIn("| 3.00 |", report.table(found))
        self.assertEqual(report.table(again), report.table(found))


class AGoal(unittest.TestCase):
    def test_is_met_up_to_its_limit_and_missed_beyond(self):
        at_most = goals.Goal("a", "b", 0.5, True, goals.ratio("x", "y", "per_s"))
        at_least = goals.Goal("a", "b", 0.5, False, goals.ratio("x", "y", "per_s"))
        for ours, low, high in ((499, "met", "MISSED"), (500, "met", "met"),
                                (501, "MISSED", "met")):
            found = results(x=[raw(ours)], y=[raw(1000)])
            self.assertEqual((at_most.judge(found)[1], at_least.judge(found)[1]), (low, high))

    def test_is_held_against_the_best_of_several(self):
        goal = goals.Goal("a", "b", 1, False, goals.ratio("x", ["y", "z", "absent"], "per_s"))
        found = results(x=[raw(300)], y=[raw(100)], z=[raw(200)])
        self.assertEqual(goal.judge(found), (1.5, "met"))

    def test_is_not_met_by_what_was_not_measured(self):
        for goal in goals.GOALS:
            self.assertEqual(goal.judge(Results()), (None, "not measured"), goal.what)

    def test_looks_at_the_worst_of_several_and_at_the_growth_of_one(self):
        self.assertIsNone(goals.worst(lambda _: 1, lambda _: None)(Results()))
        self.assertEqual(goals.worst(lambda _: 1, lambda _: 3)(Results()), 3)
        grown = results(small=[{"grown_mb": 1}], large=[{"grown_mb": 20}])
        self.assertEqual(goals.growth([("small", 1000), ("large", 10_000)], "grown_mb")(grown), 2)


class APlot(unittest.TestCase):
    def test_is_drawn_for_whatever_was_measured_and_is_well_formed(self):
        found = results(
            W1__latchkey__apache=[raw(100, 90)], W1__curator__apache=[raw(50, 300)],
            **{"W1__bare__apache__one transaction": [raw(90, 80)],
               "W3__latchkey__apache": [raw(100)], "W3__latchkey__apache__1 sessions": [raw(200)]})
        with tempfile.TemporaryDirectory() as folder:
            names = plots.draw_all(found, pathlib.Path(folder))
            texts = {name: ElementTree.parse(pathlib.Path(folder) / name).getroot()
                     for name in names}
        self.assertEqual(set(names), {"w1_latency.svg", "w3_latency.svg", "w3_contenders.svg"})
        legend = [each.text for each in texts["w1_latency.svg"].iter()
                  if each.tag.endswith("text")]
        for name in ("latchkey, apache", "bare, apache, one transaction", "99.9"):
            self.assertIn(name, legend)

    def test_places_each_further_nine_as_far_above(self):
        axis = plots.nines()
        self.assertAlmostEqual(axis.place(10) - axis.place(1), axis.place(1000) - axis.place(100))


if __name__ == "__main__":
    sys.exit(unittest.main())
