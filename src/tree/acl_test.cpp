#include "tree/acl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace latchkey::tree {
namespace {

const Identity kAda{"digest", "ada:hash"};
const Identity kBob{"digest", "bob:hash"};
const Identity kHost{"ip", "10.1.2.3"};
const Identity kRoot{"super", ""};

wire::WireAcl entry(std::int32_t permissions, std::string scheme, std::string id) {
  return {{permissions, std::move(scheme), std::move(id)}};
}

bool may(const AclList& acl, std::int32_t permissions, std::vector<Identity> identities) {
  return permits(acl, permissions, identities);
}

std::optional<AclList> settled(const AclList& asked, std::vector<Identity> identities = {}) {
  return settle(asked, identities);
}

TEST(Permits, H92_EachPermissionIsGivenByItsOwnBit) {
  for (const std::int32_t given : {kRead, kWrite, kCreate, kDelete, kAdmin}) {
    for (const std::int32_t asked : {kRead, kWrite, kCreate, kDelete, kAdmin}) {
      EXPECT_EQ(may({entry(given, "world", "anyone")}, asked, {}), given == asked);
      EXPECT_EQ(may({entry(given, "digest", "ada:hash")}, asked, {kAda}), given == asked);
    }
  }
}

TEST(Permits, OneOfSeveralPermissionsIsEnough) {
  EXPECT_TRUE(may({entry(kAdmin, "world", "anyone")}, kRead | kAdmin, {}));
  EXPECT_FALSE(may({entry(kWrite, "world", "anyone")}, kRead | kAdmin, {}));
}

TEST(Permits, H92_OnlyWhoIsMeantIsLetIn) {
  const AclList adas{entry(kAllPermissions, "digest", "ada:hash")};

  EXPECT_TRUE(may(adas, kRead, {kHost, kAda}));
  EXPECT_FALSE(may(adas, kRead, {kHost, kBob}));
  EXPECT_FALSE(may(adas, kRead, {}));
  EXPECT_FALSE(may(adas, kRead, {{"digest", "ada:hash2"}}));
  EXPECT_FALSE(may(adas, kRead, {{"ip", "ada:hash"}})) << "the scheme is a part of who one is";
  EXPECT_TRUE(may({entry(kRead, "ip", "10.1.0.0/16")}, kRead, {kHost}));
  EXPECT_FALSE(may({entry(kRead, "ip", "10.2.0.0/16")}, kRead, {kHost}));
}

TEST(Permits, EntriesDoNotAddUpAcrossPeople) {
  const AclList list{entry(kRead, "world", "anyone"), entry(kWrite, "digest", "ada:hash")};

  EXPECT_TRUE(may(list, kRead, {kBob}));
  EXPECT_FALSE(may(list, kWrite, {kBob}));
  EXPECT_TRUE(may(list, kWrite, {kAda}));
}

TEST(Permits, H92_ASchemeNobodyKnowsLetsNobodyIn) {
  EXPECT_FALSE(may({entry(kAllPermissions, "world", "ada")}, kRead, {{"world", "ada"}}));
  EXPECT_FALSE(may({entry(kAllPermissions, "auth", "")}, kRead, {kAda, {"auth", ""}}));
  EXPECT_FALSE(may({entry(kAllPermissions, "sasl", "ada")}, kRead, {{"sasl", "ada"}}));
}

TEST(Permits, ACertificatesSubjectIsComparedAsAWhole) {
  const AclList list{entry(kAllPermissions, "x509", "CN=ada,O=works")};
  EXPECT_TRUE(may(list, kWrite, {{"x509", "CN=ada,O=works"}}));
  EXPECT_FALSE(may(list, kRead, {{"x509", "CN=ada"}}));
  EXPECT_FALSE(may(list, kRead, {{"digest", "CN=ada,O=works"}}));
}

TEST(Permits, SuperAndAnEmptyListPermitEverything) {
  EXPECT_TRUE(may({entry(kRead, "digest", "ada:hash")}, kAdmin, {kHost, kRoot}));
  EXPECT_TRUE(may({}, kAdmin, {}));
}

TEST(Settle, KeepsWhatIsWellFormed) {
  const AclList list{entry(kRead, "world", "anyone"), entry(kAllPermissions, "digest", "ada:hash"),
                     entry(kWrite, "ip", "10.0.0.0/8")};

  EXPECT_EQ(settled(list), list);
}

TEST(Settle, ASubjectNamesSomething) {
  EXPECT_TRUE(settled({entry(kRead, "x509", "CN=ada")}));
  for (const std::string id : {"", "ada", "=ada"}) {
    EXPECT_FALSE(settled({entry(kRead, "x509", id)})) << id;
  }
  const Identity ada{"x509", "CN=ada"};
  EXPECT_EQ(settled({entry(kRead, "auth", "")}, {kHost, ada}),
            (AclList{entry(kRead, "x509", "CN=ada")}));
}

TEST(Settle, LeavesOutDuplicates) {
  const auto world = entry(kRead, "world", "anyone");
  const auto ada = entry(kRead, "digest", "ada:hash");

  EXPECT_EQ(settled({world, ada, world, world, ada}), (AclList{world, ada}));
  EXPECT_EQ(settled({world, entry(kWrite, "world", "anyone")})->size(), 2U);
}

TEST(Settle, PutsProvenIdentitiesInPlaceOfAuth) {
  const AclList both{entry(kRead, "digest", "ada:hash"), entry(kRead, "digest", "bob:hash")};

  EXPECT_EQ(settled({entry(kRead, "auth", "")}, {kHost, kAda, kRoot, kBob}), both);
  EXPECT_EQ(settled({entry(kRead, "auth", "whatever")}, {kAda, kBob}), both);
}

TEST(Settle, ADuplicateThatAuthBringsStaysAsWithApache) {
  const auto ada = entry(kRead, "digest", "ada:hash");

  EXPECT_EQ(settled({ada, entry(kRead, "auth", "")}, {kAda}), (AclList{ada, ada}));
}

TEST(Settle, H92_AuthOfSomebodyWhoHasProvenNothingIsInvalid) {
  EXPECT_EQ(settled({entry(kRead, "auth", "")}), std::nullopt);
  EXPECT_EQ(settled({entry(kRead, "auth", "")}, {kHost}), std::nullopt);
  EXPECT_EQ(settled({entry(kRead, "auth", "")}, {kRoot}), std::nullopt);
  EXPECT_EQ(settled({entry(kRead, "world", "anyone"), entry(kRead, "auth", "")}), std::nullopt);
}

TEST(Settle, RefusesAnEmptyListAndUnknownSchemes) {
  EXPECT_EQ(settled({}), std::nullopt);
  for (const std::string scheme : {"", "super", "sasl", "host", "World", "ips"}) {
    EXPECT_EQ(settled({entry(kRead, scheme, "anyone")}, {kAda, kRoot}), std::nullopt) << scheme;
  }
  EXPECT_EQ(settled({entry(kRead, "world", "somebody")}), std::nullopt);
  EXPECT_EQ(settled({entry(kRead, "world", "anyone"), entry(kRead, "digest", "")}), std::nullopt);
}

TEST(Settle, ADigestHasTwoPartsAsApacheCountsThem) {
  for (const std::string id : {"u:h", ":h", "u:h:", "u:h::"}) {
    EXPECT_TRUE(settled({entry(kRead, "digest", id)})) << id;
  }
  for (const std::string id : {"", ":", "u", "u:", "u::h", "a:b:c"}) {
    EXPECT_FALSE(settled({entry(kRead, "digest", id)})) << id;
  }
}

TEST(Settle, AnAddressIsWellFormed) {
  for (const std::string id : {"1.2.3.4", "1.2.3.4/0", "1.2.3.4/32", "1.2.3.4/024", "01.2.3.4",
                               "::", "::1", "1::", "2001:db8::/32", "1:2:3:4:5:6:7:8/128",
                               "1:2:3:4:5:6:7::", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4"}) {
    EXPECT_TRUE(settled({entry(kRead, "ip", id)})) << id;
  }
  for (const std::string id : {"",
                               "/",
                               "/8",
                               "1.2.3",
                               "1.2.3.4.",
                               "1.2.3.4.5",
                               "1..3.4",
                               ".1.2.3",
                               "1.2.3.256",
                               "1.2.3.-4",
                               "1.2.3.4/",
                               "1.2.3.4/33",
                               "1.2.3.4/-1",
                               "1.2.3.4/24/8",
                               "1.2.3.4/x",
                               " 1.2.3.4",
                               ":",
                               ":1",
                               "1:",
                               ":::",
                               "1::2::3",
                               "1:2:3:4:5:6:7",
                               "1:2:3:4:5:6:7:8:9",
                               "1:2:3:4::5:6:7:8",
                               "12345::",
                               "g::",
                               "-1::",
                               "::/129",
                               "1.2.3.4::",
                               "::1.2.3.4:5",
                               "::1.2.3",
                               "1:2:3:4:5:6:7:1.2.3.4",
                               "1:2:3:4:5:6:7:8:",
                               "fe80::1%eth0"}) {
    EXPECT_FALSE(settled({entry(kRead, "ip", id)})) << id;
  }
}

TEST(Settle, H94_ASmallRequestDoesNotGrowIntoAHugeList) {
  const std::vector<Identity> identities(20, {"digest", "ada:" + std::string(1'000, 'h')});
  AclList asked;
  for (std::int32_t i = 0; i < 1'000; ++i) asked.push_back(entry(i, "auth", ""));

  EXPECT_EQ(settle(asked, identities), std::nullopt);
  asked.resize(10);
  EXPECT_EQ(settle(asked, identities)->size(), 200U);
}

TEST(Masked, H92_TheHashIsBlottedOut) {
  const AclList list{entry(kRead, "digest", "ada:hash"), entry(kRead, "digest", "bob:a:b\nc"),
                     entry(kRead, "world", "anyone"), entry(kRead, "ip", "::1")};

  const AclList shown = masked(list);

  EXPECT_EQ(shown, (AclList{entry(kRead, "digest", "ada:x"), entry(kRead, "digest", "bob:x"),
                            entry(kRead, "world", "anyone"), entry(kRead, "ip", "::1")}));
}

TEST(Lists, OpenAndReadOnlyAreWhatTheyAreCalled) {
  EXPECT_TRUE(may(*open_list(), kAdmin, {}));
  EXPECT_TRUE(may(*read_only_list(), kRead, {}));
  EXPECT_FALSE(may(*read_only_list(), kAllPermissions - kRead, {}));
}

TEST(AclTable, EqualListsShareOneCopy) {
  AclTable table;
  const AclList adas{entry(kRead, "digest", "ada:hash")};

  const AclRef one = table.share(adas);

  EXPECT_EQ(*one, adas);
  EXPECT_EQ(table.share(adas), one);
  EXPECT_NE(table.share({entry(kWrite, "digest", "ada:hash")}), one);
  EXPECT_NE(table.share({entry(kRead, "digest", "ada:has"), entry(kRead, "h", "")}), one);
  EXPECT_EQ(table.share(*open_list()), open_list());
}

TEST(AclTable, H94_AListIsForgottenWithTheLastWhoUsesIt) {
  AclTable table;
  const auto share = [&](int i) {
    return table.share({entry(kRead, "digest", "u:" + std::to_string(i))});
  };
  std::vector<AclRef> kept;
  for (int i = 0; i < 1'000; ++i) kept.push_back(share(i));
  const std::vector<AclRef> others(kept.begin(), kept.begin() + 10);
  ASSERT_EQ(table.size(), 1'000U);

  kept.clear();

  EXPECT_EQ(table.size(), 10U);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(share(i), others[static_cast<std::size_t>(i)]);
  EXPECT_EQ(*share(500), (AclList{entry(kRead, "digest", "u:500")}));
  EXPECT_EQ(table.size(), 10U);
}

TEST(AclTable, AListMayOutliveItsTable) {
  AclRef list;
  {
    AclTable table;
    list = table.share({entry(kRead, "digest", "ada:hash")});
  }

  EXPECT_EQ(list->size(), 1U);
}

}  // namespace
}  // namespace latchkey::tree
