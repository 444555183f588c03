#pragma once

#include <string>

#include "support/apache_server.hpp"
#include "support/embedded_server.hpp"
#include "support/ensemble.hpp"

namespace latchkey::test_support {

/// One standalone server, one ensemble and one server of our own per test program: starting a JVM
/// is the slowest thing a test can do. Each is started at the first call, and stopped after the
/// last test. A test that killed, paused or stopped a server need not repair it: every call hands
/// out one that serves.
///
///     auto session = open(shared_server().connect_string());
///     Mutex mutex(session, Path(fresh_path()));
///
/// The data of earlier tests is still there; fresh_path() keeps tests apart.
/// Thread safety: one thread at a time.
[[nodiscard]] ApacheServer& shared_server();
[[nodiscard]] Ensemble& shared_ensemble();  ///< With QuorumLinks::kCuttable.
[[nodiscard]] EmbeddedServer& shared_embedded();

/// A path under the root that no other call has returned: "/MutexTest.GrantsInOrder-3".
[[nodiscard]] std::string fresh_path();

}  // namespace latchkey::test_support
