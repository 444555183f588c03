#include "strike.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::faults {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::Not;
using testing::UnorderedElementsAre;

TEST(FaultDeck, DealsEveryCardOnceBeforeAnyTwice) {
  base::Random random(7);
  Deck<int> deck({1, 2, 3}, random);

  for (int round = 0; round < 20; ++round) {
    const std::vector<int> dealt = {deck.next(), deck.next(), deck.next()};
    EXPECT_THAT(dealt, UnorderedElementsAre(1, 2, 3));
  }
}

TEST(FaultDeck, TheSeedDecidesTheOrder) {
  std::set<std::vector<int>> orders;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<std::vector<int>> dealt(2);
    for (auto& cards : dealt) {
      base::Random random(seed);
      Deck<int> deck({1, 2, 3}, random);
      for (int i = 0; i < 6; ++i) cards.push_back(deck.next());
    }
    EXPECT_EQ(dealt[0], dealt[1]);
    orders.insert(dealt[0]);
  }
  EXPECT_GT(orders.size(), 5U);
}

TEST(RealFaults, LinksAreOnlyTakenDownWhereThatCanBeDone) {
  EXPECT_THAT(client_faults({}), Not(Contains(ClientFault::kLinkDown)));
  EXPECT_THAT(client_faults({.namespaces = true}), Contains(ClientFault::kLinkDown));
  EXPECT_THAT(client_faults({.namespaces = true}), Not(Contains(ClientFault::kPacketLoss)));
  EXPECT_THAT(client_faults({.namespaces = true, .packet_loss = true}),
              Contains(ClientFault::kPacketLoss));
}

TEST(RealFaults, LeadersAreForEnsemblesAndDisksForOurServer) {
  EXPECT_THAT(server_faults(ServiceKind::kEnsemble), Contains(ServerFault::kKillLeader));
  EXPECT_THAT(server_faults(ServiceKind::kEnsemble), Not(Contains(ServerFault::kSyncError)));
  EXPECT_THAT(server_faults(ServiceKind::kEmbedded), Contains(ServerFault::kSyncError));
  EXPECT_THAT(server_faults(ServiceKind::kEmbedded), Contains(ServerFault::kSlowDisk));
  EXPECT_THAT(server_faults(ServiceKind::kEmbedded), Not(Contains(ServerFault::kKillLeader)));
  EXPECT_THAT(server_faults(ServiceKind::kStandalone), Contains(ServerFault::kKill));
}

TEST(RealFaults, FaultsOfServersAreFoundByTheirNames) {
  for (const ServiceKind kind : {ServiceKind::kEnsemble, ServiceKind::kEmbedded}) {
    for (const ServerFault fault : server_faults(kind)) {
      EXPECT_EQ(server_fault_named(name(fault)), fault);
    }
  }
  EXPECT_EQ(server_fault_named("unknown"), std::nullopt);
}

TEST(RealFaults, LongMeansPastTheSessionsTimeout) {
  base::Random random(3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_GT(length_of(ClientFault::kStopLong, 2s, random), 2s);
    EXPECT_GT(length_of(ServerFault::kStopLeader, 2s, random), 2s);
    EXPECT_LT(length_of(ClientFault::kStopShort, 2s, random), 2s);
  }
}

TEST(Strike, ARoundThatWasNotStruckOnBothSidesSaysSo) {
  const auto what = [](std::map<std::string, int> struck, std::optional<ServerFault> only = {}) {
    return missing(ServiceKind::kEmbedded, {}, only, struck);
  };

  EXPECT_EQ(what({}), "no fault of a client has struck");
  EXPECT_EQ(what({{"kill-server", 1}}), "no fault of a client has struck");
  EXPECT_EQ(what({{"cut", 2}}), "no fault of a server has struck");
  EXPECT_EQ(what({{"cut", 2}, {"kill-server", 1}}), "");
  EXPECT_EQ(what({{"cut", 2}, {"kill-server", 1}}, ServerFault::kSlowDisk),
            std::string(name(ServerFault::kSlowDisk)) + " has never struck");
}

TEST(Strike, WhatARoundDidNotComeToIsNamed) {
  std::map<std::string, int> struck;
  for (const ClientFault fault : client_faults({})) struck[std::string(name(fault))] = 1;

  EXPECT_EQ(not_struck(ServiceKind::kEmbedded, {}, ServerFault::kSyncError, struck),
            std::vector{std::string(name(ServerFault::kSyncError))});
  struck.erase("cut");
  struck[std::string(name(ServerFault::kSyncError))] = 1;
  EXPECT_EQ(not_struck(ServiceKind::kEmbedded, {}, ServerFault::kSyncError, struck),
            std::vector<std::string>{"cut"});
}

TEST(FaultKinds, SomeLeaveEveryProcessOfTheServiceAlive) {
  EXPECT_THAT(sparing_faults(ServiceKind::kEmbedded),
              UnorderedElementsAre(ServerFault::kStopShort, ServerFault::kStopLong,
                                   ServerFault::kSlowDisk));
  EXPECT_THAT(sparing_faults(ServiceKind::kStandalone),
              UnorderedElementsAre(ServerFault::kStopShort, ServerFault::kStopLong));
  EXPECT_THAT(sparing_faults(ServiceKind::kEnsemble),
              UnorderedElementsAre(ServerFault::kStopShort, ServerFault::kStopLong,
                                   ServerFault::kStopLeader, ServerFault::kCutFollower));
}

}  // namespace
}  // namespace latchkey::faults
