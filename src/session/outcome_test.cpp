#include "session/outcome.hpp"

#include <set>

#include <gtest/gtest.h>

namespace latchkey::session {
namespace {

using wire::Err;
using wire::Op;

struct Row {
  std::int32_t err;
  Code code;
  bool definite;
  bool final;  ///< Settles a debt.
  bool proof;  ///< Could only come from the leader.
};

constexpr Row kTable[] = {
    {0, Code::kServerError, false, true, true},
    {-1, Code::kServerError, false, false, false},
    {-2, Code::kServerError, false, false, false},
    {-3, Code::kServerError, false, false, false},
    {-4, Code::kServerError, false, false, false},
    {-5, Code::kServerError, true, true, false},
    {-6, Code::kUnimplemented, true, true, false},
    {-7, Code::kServerError, false, false, false},
    {-8, Code::kBadArguments, true, true, false},
    {-9, Code::kServerError, false, false, false},
    {-13, Code::kServerError, false, false, false},
    {-14, Code::kServerError, false, false, false},
    {-100, Code::kServerError, false, false, false},
    {-101, Code::kNoNode, true, true, true},
    {-102, Code::kNotAuthorized, true, true, false},
    {-103, Code::kBadVersion, true, true, true},
    {-108, Code::kNoChildrenForEphemerals, true, true, true},
    {-110, Code::kNodeExists, true, true, true},
    {-111, Code::kNotEmpty, true, true, true},
    {-112, Code::kSessionLost, true, true, false},
    {-113, Code::kServerError, false, false, false},
    {-114, Code::kInvalidAcl, true, true, true},
    {-115, Code::kAuthFailed, true, true, false},
    {-118, Code::kSessionMoved, true, true, false},
    {-119, Code::kReadOnlyServer, true, false, false},
    {-120, Code::kServerError, true, true, false},
    {-121, Code::kNoWatcher, true, true, false},
    {-122, Code::kServerError, false, false, false},
    {-123, Code::kUnimplemented, true, true, false},
    {-124, Code::kAuthFailed, true, true, false},
    {-125, Code::kQuotaExceeded, true, true, false},
    {-127, Code::kOverloaded, true, false, false},
};

TEST(Outcome, H03_TheTableOfEveryKnownCode) {
  for (const Row& row : kTable) {
    const Err err{row.err};
    EXPECT_EQ(code_of(err), row.code) << row.err;
    const Effect expected = row.definite ? Effect::kNone : Effect::kUnknown;
    EXPECT_EQ(effect_of(Op::kCreate2, Progress::kAnswered, err), expected) << row.err;
    EXPECT_EQ(is_final(err), row.final) << row.err;
    EXPECT_EQ(is_proof(Op::kCreate2, err), row.proof) << row.err;
    EXPECT_EQ(is_proof(Op::kSync, err), row.err == 0) << row.err;
    EXPECT_FALSE(is_proof(Op::kGetData, err)) << row.err;
  }
}

TEST(Outcome, H03_EveryOtherNumberIsAmbiguous) {
  std::set<std::int32_t> known;
  for (const Row& row : kTable) known.insert(row.err);
  for (std::int32_t number = -1'000; number <= 1'000; ++number) {
    if (known.contains(number)) continue;
    EXPECT_EQ(code_of(Err{number}), Code::kServerError) << number;
    EXPECT_EQ(effect_of(Op::kDelete, Progress::kAnswered, Err{number}), Effect::kUnknown) << number;
    EXPECT_FALSE(is_final(Err{number})) << number;
    EXPECT_FALSE(is_proof(Op::kDelete, Err{number})) << number;
  }
  for (const std::int32_t number : {INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(effect_of(Op::kDelete, Progress::kAnswered, Err{number}), Effect::kUnknown);
  }
}

TEST(Outcome, H03_WithoutAnAnswerItCountsWhetherItWasSent) {
  EXPECT_EQ(effect_of(Op::kCreate, Progress::kUnsent, Err::kOk), Effect::kNone);
  EXPECT_EQ(effect_of(Op::kCreate, Progress::kSent, Err::kNoNode), Effect::kUnknown)
      << "the code is not the server's";
}

TEST(Outcome, ReadsHaveNoEffectHoweverTheyEnd) {
  for (const Op op : {Op::kGetData, Op::kExists, Op::kGetChildren, Op::kGetChildren2, Op::kGetAcl,
                      Op::kSync, Op::kMultiRead, Op::kGetEphemerals, Op::kGetAllChildrenNumber,
                      Op::kWhoAmI, Op::kPing, Op::kAddWatch, Op::kRemoveWatches}) {
    EXPECT_FALSE(is_write(op)) << name(op);
    EXPECT_EQ(effect_of(op, Progress::kSent, Err::kOk), Effect::kNone) << name(op);
  }
}

TEST(Outcome, WritesAreThoseThatChangeTheTree) {
  for (const Op op : {Op::kCreate, Op::kCreate2, Op::kCreateContainer, Op::kCreateTtl, Op::kDelete,
                      Op::kSetData, Op::kSetAcl, Op::kMulti, Op::kReconfig, Op::kDeleteContainer,
                      Op::kCreateSession, Op::kCloseSession}) {
    EXPECT_TRUE(is_write(op)) << name(op);
  }
}

TEST(Outcome, EveryOpHasANameOfItsOwn) {
  std::set<std::string_view> names;
  int count = 0;
  for (std::int32_t number = -20; number < 120; ++number) {
    const std::string_view text = name(Op{number});
    if (text == "unknown") continue;
    ++count;
    names.insert(text);
  }
  EXPECT_EQ(count, 33);
  EXPECT_EQ(names.size(), 33U);
}

}  // namespace
}  // namespace latchkey::session
