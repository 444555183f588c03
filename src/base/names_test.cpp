#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "latchkey/election.hpp"
#include "latchkey/lease.hpp"
#include "latchkey/session.hpp"
#include "latchkey/token.hpp"
#include "latchkey/watch.hpp"

namespace latchkey {
namespace {

template <class Enum>
std::size_t distinct_names(int count) {
  std::set<std::string_view> names;
  for (int i = 0; i < count; ++i) names.insert(name(static_cast<Enum>(i)));
  return names.size();
}

TEST(Names, EveryStateAndEventHasOneOfItsOwn) {
  EXPECT_EQ(distinct_names<EventKind>(7), 7U);
  EXPECT_EQ(distinct_names<SessionState>(6), 6U);
  EXPECT_EQ(distinct_names<LeaseState>(4), 4U);
  EXPECT_EQ(distinct_names<ElectionState>(4), 4U);
  EXPECT_EQ(name(static_cast<SessionState>(99)), "unknown");
}

TEST(Names, PrintThemselves) {
  std::ostringstream out;

  out << EventKind::kDeleted << ' ' << SessionState::kSuspended << ' ' << LeaseState::kLost << ' '
      << ElectionState::kLeading;

  EXPECT_EQ(out.str(), "deleted suspended lost leading");
}

TEST(Token, H16_GrowsByZxidFirstThenByHold) {
  EXPECT_LT(Token(1, 9), Token(2, 0));
  EXPECT_LT(Token(2, 0), Token(2, 1));
  EXPECT_EQ(Token(2, 1), Token(2, 1));
}

TEST(Token, PrintsAsOneValue) {
  EXPECT_EQ(to_string(Token(4'294'967'321)), "4294967321");
  EXPECT_EQ(to_string(Token(4'294'967'321, 3)), "4294967321.3");
}

}  // namespace
}  // namespace latchkey
