#pragma once

/// The version of the library; the build reads it from here.
#define LATCHKEY_VERSION "0.1.0"
