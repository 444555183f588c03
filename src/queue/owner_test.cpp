#include "queue/owner.hpp"

#include <random>

#include <gtest/gtest.h>

namespace latchkey::queue {
namespace {

TEST(Owner, ReadsLikeANote) {
  const Owner owner{"db1", 4711, "backup", "2024-05-17T09:30:00Z", "nightly run"};
  EXPECT_EQ(format_owner(owner),
            "latchkey/1\nhost=db1\npid=4711\nprogram=backup\nsince=2024-05-17T09:30:00Z\n"
            "reason=nightly run\n");
  EXPECT_EQ(parse_owner(format_owner(owner)), owner);
}

TEST(Owner, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(format_owner({}), "latchkey/1\n");
  EXPECT_EQ(parse_owner("latchkey/1\n"), Owner{});
  EXPECT_EQ(parse_owner("latchkey/1"), Owner{});
}

TEST(Owner, NoValueCanPoseAsAnotherLine) {
  Owner owner;
  owner.reason = "x\nhost=evil\r\x1b[31m 100% größe \xff\xc2\x85";
  const std::string text = format_owner(owner);
  EXPECT_EQ(text, "latchkey/1\nreason=x%0Ahost=evil%0D%1B[31m 100%25 größe %FF%C2%85\n");
  EXPECT_EQ(parse_owner(text), owner);
}

TEST(Owner, SkipsWhatItDoesNotKnow) {
  const auto owner = parse_owner("latchkey/1\n\ncolour=red\nno equals sign\nhost=a=b\npid=12x\n");
  ASSERT_TRUE(owner);
  EXPECT_EQ(owner->host, "a=b");
  EXPECT_EQ(owner->pid, 0);
}

TEST(Owner, AStrayPercentSignStandsForItself) {
  EXPECT_EQ(parse_owner("latchkey/1\nhost=100%\nreason=%zz%4")->host, "100%");
  EXPECT_EQ(parse_owner("latchkey/1\nhost=100%\nreason=%zz%4")->reason, "%zz%4");
}

TEST(Owner, OtherClientsDataIsNotOurs) {
  EXPECT_FALSE(parse_owner(""));
  EXPECT_FALSE(parse_owner("192.168.0.7"));
  EXPECT_FALSE(parse_owner("latchkey/10\nhost=a"));
  EXPECT_FALSE(parse_owner("__REVOKE__"));
}

TEST(Owner, WhoIsAskedToLetGoKeepsItsNote) {
  const Owner owner{"db1", 4711, "backup", "2024-05-17T09:30:00Z", "nightly run"};
  const std::string note = format_owner(owner) + "\nlock_delay=5000";
  EXPECT_FALSE(is_asked_to_let_go(note));

  const std::string asked = asking_to_let_go(note);

  EXPECT_TRUE(is_asked_to_let_go(asked));
  EXPECT_EQ(parse_owner(asked), owner);
  EXPECT_TRUE(asked.ends_with("\n\nlock_delay=5000")) << "what others read at the end is there";
  EXPECT_EQ(asking_to_let_go(asked), asked) << "once is enough";
  EXPECT_TRUE(is_asked_to_let_go(asking_to_let_go("latchkey/1")));
}

TEST(Owner, OtherClientsAreAskedInCuratorsWay) {
  for (const char* data : {"", "192.168.0.7", "latchkey/10\nhost=a", "__REVOKE__"}) {
    EXPECT_EQ(asking_to_let_go(data), "__REVOKE__");
  }
  EXPECT_TRUE(is_asked_to_let_go("__REVOKE__"));
  EXPECT_FALSE(is_asked_to_let_go("__REVOKE__ "));
  EXPECT_FALSE(is_asked_to_let_go("10.0.0.7\nrelease=requested\n"));
  EXPECT_FALSE(is_asked_to_let_go("latchkey/1\nrelease=requested-by-nobody\n"));
}

TEST(Owner, NoReasonCanPoseAsARequest) {
  EXPECT_FALSE(is_asked_to_let_go(format_owner({.reason = "x\nrelease=requested\n"})));
}

TEST(Owner, AnyBytesSurvive) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    Owner owner;
    for (std::string* field : {&owner.host, &owner.program, &owner.since, &owner.reason}) {
      field->resize(random() % 12);
      for (char& byte : *field) byte = static_cast<char>(random());
    }
    owner.pid = static_cast<std::int64_t>(random());
    EXPECT_EQ(parse_owner(format_owner(owner)), owner);
  }
}

}  // namespace
}  // namespace latchkey::queue
