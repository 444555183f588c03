#include "soak.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace latchkey::faults {

namespace {

std::string growth(const char* what, std::int64_t from, std::int64_t to, std::int64_t most) {
  if (to <= most) return {};
  return std::string(what) + " grew from " + std::to_string(from) + " to " + std::to_string(to) +
         ", at most " + std::to_string(most) + " are expected";
}

}  // namespace

Usage usage_of(pid_t process) {
  const std::filesystem::path folder = "/proc/" + std::to_string(process);
  Usage usage{.process = process};
  std::ifstream status(folder / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) usage.threads = std::stoll(line.substr(8));
    if (line.starts_with("RssAnon:")) usage.memory_kb = std::stoll(line.substr(8));
  }
  if (usage.threads == 0) throw std::runtime_error("no process " + std::to_string(process));
  const std::filesystem::directory_iterator descriptors(folder / "fd");
  usage.descriptors = std::distance(begin(descriptors), end(descriptors));
  return usage;
}

Usage usage_of(std::span<const pid_t> processes) {
  Usage sum;
  for (const pid_t process : processes) {
    const Usage one = usage_of(process);
    sum.process = one.process;
    sum.descriptors += one.descriptors;
    sum.threads += one.threads;
    sum.memory_kb += one.memory_kb;
  }
  return sum;
}

std::string grown(std::span<const Usage> readings, const Allowance& allowance) {
  if (readings.empty()) return {};
  const Usage& first = readings.front();
  const Usage& last = readings.back();
  std::string found = growth("descriptors", first.descriptors, last.descriptors,
                             first.descriptors + allowance.descriptors);
  if (found.empty()) {
    found = growth("threads", first.threads, last.threads, first.threads + allowance.threads);
  }
  if (!found.empty() || !allowance.memory) return found;

  std::vector<std::int64_t> own;
  for (const Usage& reading : readings) {
    if (reading.process == last.process) own.push_back(reading.memory_kb);
  }
  if (own.size() <= kWarmUp) return {};
  const std::int64_t most = *std::max_element(own.begin(), own.begin() + kWarmUp);
  const auto share = static_cast<std::int64_t>(kMemoryShare * static_cast<double>(most));
  return growth("KiB of memory", most, own.back(), most + std::max(share, kMemoryFloorKb));
}

std::string to_text(const Soak& soak) {
  std::string text;
  const auto add = [&](std::int64_t first, std::int64_t last, const char* what) {
    text += ' ' + std::to_string(first) + " > " + std::to_string(last) + what;
  };
  for (const auto& [who, readings] : soak) {
    const Usage& first = readings.front();
    const Usage& last = readings.back();
    text += (text.empty() ? "" : "; ") + who;
    add(first.descriptors, last.descriptors, " descriptors,");
    add(first.threads, last.threads, " threads,");
    add(first.memory_kb, last.memory_kb, " KiB");
    if (last.process != first.process) text += " in another process";
  }
  return text;
}

}  // namespace latchkey::faults
