#pragma once

#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

namespace latchkey::mini {

/// Every order was gone through, and no promise was broken. Fewer states than `least` would mean
/// that nothing happened.
template <class Explorer>
void expect_all_is_well_in(Explorer explorer, std::size_t least = 50) {
  explorer.run();
  EXPECT_EQ(explorer.failure(), "");
  EXPECT_TRUE(explorer.complete()) << "the bound on states was too small";
  EXPECT_GT(explorer.states(), least);
  if (std::getenv("LATCHKEY_VERBOSE")) std::cout << explorer.states() << " states\n";
}

/// A mistake was made on purpose, and this is how it was noticed.
template <class Explorer>
void expect_found_in(Explorer explorer, const std::string& what) {
  explorer.run();
  EXPECT_NE(explorer.failure().find(what), std::string::npos) << "found: " << explorer.failure();
  if (std::getenv("LATCHKEY_VERBOSE")) std::cout << explorer.failure();
}

}  // namespace latchkey::mini
