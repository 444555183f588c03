#pragma once

#include <memory>
#include <string>

#include "integration/mutex_fixture.hpp"
#include "interop/peer.hpp"
#include "interop/section.hpp"

namespace latchkey::test_support {

/// Of the sessions of those who are killed. Until then they live, however busy the machine is.
constexpr std::chrono::milliseconds kDoomedTimeout = 8s;

/// A suite over every kind of service in which other clients take part, each test with a lock
/// directory of its own.
class InteropTest : public MutexTest {
 protected:
  [[nodiscard]] static std::unique_ptr<Guest> curator(std::chrono::milliseconds timeout = 10s) {
    return std::make_unique<Guest>(shared_curator(), service().connect_string(), timeout);
  }
  [[nodiscard]] static std::unique_ptr<Guest> kazoo(std::chrono::milliseconds timeout = 10s) {
    return std::make_unique<Guest>(shared_kazoo(), service().connect_string(), timeout);
  }
  /// The path of the entry at this place in the queue.
  [[nodiscard]] std::string entry(std::size_t place) {
    return directory + "/" + witness.queue(directory).at(place);
  }
  [[nodiscard]] bool is_watched(const std::string& node) { return witness.is_watched(node); }
};

/// The suites.
class MutexInteropTest : public InteropTest {};
class RwLockInteropTest : public InteropTest {};
class SemaphoreInteropTest : public InteropTest {};
class ElectionInteropTest : public InteropTest {};
class InspectInteropTest : public InteropTest {};
/// What is about kazoo alone, and does not depend on the number of servers.
class KazooInteropTest : public InteropTest {};

}  // namespace latchkey::test_support
