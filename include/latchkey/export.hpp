#pragma once

/// Marks what liblatchkey shows to its users. Everything else is hidden, so a function or class of
/// a public header that is defined in a source file needs it:
///
///     LATCHKEY_EXPORT Deadline deadline_in(Duration span) noexcept;
///     class LATCHKEY_EXPORT Session;
///
/// Templates and inline functions do not.
#define LATCHKEY_EXPORT __attribute__((visibility("default")))
