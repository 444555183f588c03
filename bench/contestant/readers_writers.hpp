#pragma once

#include <functional>
#include <memory>
#include <string>

#include "pairs.hpp"

namespace latchkey::bench {

/// The two sides of one read-write lock, in the hands of one worker.
struct ReaderWriter {
  std::unique_ptr<Locker> read;
  std::unique_ptr<Locker> write;
};

using MakeReaderWriter = std::function<ReaderWriter(int session, const std::string& path)>;

/// Workload "rw": as "pairs", all on one lock, nine of ten for reading. Readers among a writer, two
/// writers, and a writer's number that did not grow are violations. The sections are empty.
void run_readers_writers(const Options& options, const MakeReaderWriter& make, Report& report);

}  // namespace latchkey::bench
