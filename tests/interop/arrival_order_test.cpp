#include "interop/arrival_order.hpp"

#include <gmock/gmock.h>

/// What judges the order of all clients has to be able to find fault.
namespace latchkey::test_support {
namespace {

using testing::HasSubstr;

std::string numbered(const std::string& name, int number) {
  std::string digits = std::to_string(number);
  return name + std::string(10 - digits.size(), '0') + digits;
}

std::string came(int number) { return "created " + numbered("/pool/locks/_c_x-lock-", number); }
std::string went(int number) { return "deleted " + numbered("/pool/locks/_c_x-lock-", number); }
std::string took(int number) { return "created " + numbered("/pool/leases/_c_y-lease-", number); }
std::string gave(int number) { return "deleted " + numbered("/pool/leases/_c_y-lease-", number); }

std::string verdict(const std::vector<std::string>& events, std::size_t size) {
  return permits_in_order_of_arrival(events, size).message();
}

TEST(ArrivalOrder, IsThatOfTheNumbers) {
  EXPECT_TRUE(in_order_of_arrival({"/l/b-lock-0000000001", "/l/a-lock-0000000004"}));
  EXPECT_FALSE(in_order_of_arrival({"/l/a-latch-0000000004", "/l/b-latch-0000000001"}));
  EXPECT_FALSE(in_order_of_arrival({"/l/a-lock-0000000004", "/l/b-lock-0000000004"}));
  EXPECT_FALSE(in_order_of_arrival({})) << "nothing was seen";
}

TEST(ArrivalOrder, DoesNotMatterAmongReaders) {
  EXPECT_TRUE(in_order_of_arrival({"/l/a-__READ__0000000004", "/l/b-__READ__0000000001"}));
  EXPECT_FALSE(in_order_of_arrival({"/l/a-__READ__0000000004", "/l/b-__WRIT__0000000001"}));
}

TEST(ArrivalOrder, OfPermitsIsThatOfTheQueueInFront) {
  EXPECT_EQ(verdict({came(0), took(0), came(1), came(2), went(0), took(1), went(1), took(2),
                     gave(1), went(2), gave(0), gave(2)},
                    2),
            "");
}

TEST(ArrivalOrder, AHeadThatDiesWithOrWithoutItsLeaseIsNoFault) {
  EXPECT_EQ(verdict({came(0), took(0), came(1), came(2), went(0), took(1), went(1), gave(1),  //
                     took(2)},
                    1),
            "");
  EXPECT_EQ(verdict({came(0), came(1), came(2), went(1), went(0), took(0)}, 1), "");
}

TEST(ArrivalOrder, APermitTakenOutOfTurnIsFoundOutWhenTheHeadTakesItsOwn) {
  EXPECT_THAT(verdict({came(0), came(1), took(0), went(1), took(1), went(0)}, 2),
              HasSubstr("lock-0000000000 was served before"));
}

TEST(ArrivalOrder, APermitTakenWithoutQueueingIsFoundOut) {
  EXPECT_THAT(verdict({took(0)}, 2), HasSubstr("without queueing"));
}

TEST(ArrivalOrder, AHeadThatMakesWayBeforeItHasItsPermitIsFoundOut) {
  EXPECT_THAT(verdict({came(0), took(0), went(0), came(1), took(1), went(1), came(2), took(2)}, 1),
              HasSubstr("before the one ahead had its permit"));
}

TEST(ArrivalOrder, OfPermitsNobodyTookIsNone) {
  EXPECT_THAT(verdict({came(0), went(0)}, 2), HasSubstr("nobody came"));
  EXPECT_THAT(verdict({}, 2), HasSubstr("nobody came"));
}

}  // namespace
}  // namespace latchkey::test_support
