#pragma once

/// The version of these headers; CMakeLists.txt names the same one, and a test compares them.
#define LATCHKEY_VERSION "0.1.0"
