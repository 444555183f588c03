#include "report.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iostream>

namespace latchkey::bench {

namespace {

/// In per mille; the driver's report.py has the same list.
constexpr std::array kQuantiles = {0,   10,  50,  100, 200, 250, 300, 400, 500,
                                   600, 700, 750, 800, 900, 950, 990, 999, 1'000};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

}  // namespace

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double processor_s() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

long resident_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  }
  return 0;
}

void say_begin() { std::cout << "begin" << std::endl; }

void wait_for_go() {
  std::string line;
  std::getline(std::cin, line);
}

void Report::add(const std::string& name, double value) { add_raw(name, number(value)); }

void Report::add(const std::string& name, const std::string& text) {
  add_raw(name, '"' + text + '"');
}

void Report::add_latencies(std::vector<std::uint32_t>& latencies_ns) {
  std::sort(latencies_ns.begin(), latencies_ns.end());
  std::string list;
  for (const int point : kQuantiles) {
    if (latencies_ns.empty()) break;
    const std::size_t last = latencies_ns.size() - 1;
    const std::size_t rank = last * static_cast<std::size_t>(point) / 1'000;
    if (!list.empty()) list += ',';
    list += number(latencies_ns[rank] / 1e3);
  }
  add_raw("quantiles_us", '[' + list + ']');
  add("samples", static_cast<double>(latencies_ns.size()));
}

void Report::add_raw(const std::string& name, const std::string& json) {
  if (!json_.empty()) json_ += ", ";
  json_ += '"' + name + "\": " + json;
}

void Report::print() const { std::cout << '{' << json_ << '}' << std::endl; }

}  // namespace latchkey::bench
