#include <gtest/gtest.h>

#include "storage/epoch.hpp"
#include "storage/file_journal.hpp"
#include "storage/format.hpp"
#include "storage/history.hpp"
#include "storage/sim_disk.hpp"

// Damage that is cut off on purpose, and what keeps zxids growing then.
namespace latchkey::storage {
namespace {

using Events = std::vector<History::Event>;
using Image = std::map<std::string, std::string>;

FileJournalOptions options(OnDamage on_damage) {
  return {
      .segment_bytes = 3072, .fold_bytes = 1, .spare = Spare::kInAppend, .on_damage = on_damage};
}

std::int64_t zxid(std::int64_t epoch, std::int64_t counter) { return epoch << 32 | counter; }

struct Opened {
  Image after;
  Events events;
  Recovered recovered;
  std::optional<Error> error;
};

Opened open(const Image& image, OnDamage on_damage) {
  SimDisk disk(image);
  History state;
  Opened opened;
  auto journal = FileJournal::open(disk.files(), options(on_damage), state);
  opened.events = state.events;
  if (journal) {
    opened.recovered = (*journal)->recovered();
  } else {
    opened.error = journal.error();
  }
  opened.after = disk.content();
  return opened;
}

/// Three segments or more, in epochs 1 to 3.
struct Story {
  Image image;
  Events events;
  std::vector<std::string> segments;
};

Story write_story() {
  Story story;
  SimDisk disk(1);
  History state;
  const auto journal = FileJournal::open(disk.files(), options(OnDamage::kRefuse), state);
  for (std::int64_t epoch = 1; epoch <= 3; ++epoch) {
    for (std::int64_t i = 0; i < 6; ++i) {
      story.events.push_back({zxid(epoch, i), std::string(20, 'x')});
      EXPECT_TRUE((*journal)->append(entries_of({story.events.back()})));
    }
  }
  EXPECT_TRUE((*journal)->close());
  story.image = disk.content();
  for (const auto& [name, bytes] : story.image) {
    if (kind_of(name) == FileKind::kJournal) story.segments.push_back(name);
  }
  EXPECT_GE(story.segments.size(), 3U);
  return story;
}

void flip(std::string& bytes, std::size_t at) { bytes[at] = static_cast<char>(bytes[at] ^ 1); }

TEST(Cut, H77_TheMessageSaysWhatWouldBeLostAndCuttingLosesJustThat) {
  const Story story = write_story();
  for (const std::string& name : story.segments) {
    for (const std::size_t at : {std::size_t{100}, kSector + 100, 2 * kSector + 100}) {
      Image image = story.image;
      flip(image[name], at);

      const Opened refused = open(image, OnDamage::kRefuse);
      const Opened cut = open(image, OnDamage::kCut);
      const Opened again = open(cut.after, OnDamage::kCut);

      ASSERT_TRUE(refused.error) << name << " " << at;
      EXPECT_EQ(*refused.error, Code::kDamaged);
      EXPECT_EQ(refused.after, image);
      ASSERT_FALSE(cut.error) << *cut.error;
      EXPECT_EQ(cut.events,
                Events(story.events.begin(),
                       story.events.begin() + static_cast<std::ptrdiff_t>(cut.events.size())));
      EXPECT_LT(cut.events.size(), story.events.size());
      const std::string& message = refused.error->message();
      const std::string last = zxid_text(cut.recovered.last_zxid);
      EXPECT_NE(message.find("everything after zxid " + last + " is lost"), std::string::npos)
          << message;
      EXPECT_NE(message.find("sim/" + name), std::string::npos) << message;
      EXPECT_NE(message.find("--cut-damage"), std::string::npos) << message;
      EXPECT_NE(describe(cut.recovered).find("CUT OFF"), std::string::npos);
      EXPECT_EQ(again.events, cut.events);
    }
  }
}

TEST(Cut, H77_WhatIsCutIsKeptBesideTheJournal) {
  const Story story = write_story();
  Image image = story.image;
  flip(image[story.segments[1]], kSector + 100);
  image[kDamagedPrefix + story.segments[2]] = "of an earlier time";

  const Opened cut = open(image, OnDamage::kCut);

  ASSERT_FALSE(cut.error) << *cut.error;
  EXPECT_EQ(cut.after.at(kDamagedPrefix + story.segments[1]), image.at(story.segments[1]));
  EXPECT_EQ(cut.after.at(kDamagedPrefix + story.segments[2] + "-2"), image.at(story.segments[2]));
  EXPECT_EQ(cut.after.at(kDamagedPrefix + story.segments[2]), "of an earlier time");
}

TEST(Cut, H77_ATruncatedSegmentIsCutAndGoneOnIn) {
  const Story story = write_story();
  Image image = story.image;
  image[story.segments.back()].resize(kSector);
  SimDisk disk(image);
  History before;
  {
    const auto journal = FileJournal::open(disk.files(), options(OnDamage::kCut), before);
    ASSERT_TRUE(journal) << journal.error();
    ASSERT_TRUE((*journal)->append(entries_of({{zxid(4, 1), "later"}})));
    ASSERT_TRUE((*journal)->close());
  }

  const Opened opened = open(disk.content(), OnDamage::kRefuse);

  ASSERT_FALSE(opened.error) << *opened.error;
  before.events.push_back({zxid(4, 1), "later"});
  EXPECT_EQ(opened.events, before.events);
}

TEST(Cut, H77_AMissingSegmentCutsWhatFollows) {
  const Story story = write_story();
  Image image = story.image;
  image.erase(story.segments[1]);

  const Opened cut = open(image, OnDamage::kCut);

  ASSERT_FALSE(cut.error) << *cut.error;
  EXPECT_FALSE(cut.events.empty());
  EXPECT_TRUE(cut.after.contains(kDamagedPrefix + story.segments[2]));
  EXPECT_EQ(open(cut.after, OnDamage::kCut).events, cut.events);
}

TEST(Cut, H19_WhoeverTakesTheJournalAwayIsAskedAndTheEpochGoesOn) {
  const Story story = write_story();
  Image image = story.image;
  for (const std::string& name : story.segments) image.erase(name);

  const Opened refused = open(image, OnDamage::kRefuse);
  const Opened empty = open(image, OnDamage::kCut);

  ASSERT_TRUE(refused.error);
  EXPECT_EQ(*refused.error, Code::kDamaged);
  EXPECT_NE(refused.error->message().find("epoch 3 was reached"), std::string::npos)
      << *refused.error;
  ASSERT_FALSE(empty.error) << *empty.error;
  EXPECT_TRUE(empty.events.empty());
  EXPECT_EQ(empty.recovered.epoch, 3);
}

TEST(Cut, H19_ANewestFileThatIsMissingIsNoticedByItsEpoch) {
  const Story story = write_story();
  Image image = story.image;
  image.erase(story.segments.back());
  image.erase(story.segments[story.segments.size() - 2]);

  const Opened refused = open(image, OnDamage::kRefuse);

  ASSERT_TRUE(refused.error);
  EXPECT_EQ(*refused.error, Code::kDamaged);
}

/// A snapshot, and the segment that goes on after it with one entry; all of one epoch.
Story write_folded_story() {
  Story story;
  SimDisk disk(1);
  History state;
  const auto journal = FileJournal::open(disk.files(), options(OnDamage::kRefuse), state);
  while (!(*journal)->needs_folding()) {
    story.events.push_back({static_cast<std::int64_t>(story.events.size()) + 1, "folded"});
    EXPECT_TRUE((*journal)->append(entries_of({story.events.back()})));
  }
  History empty;
  EXPECT_TRUE((*journal)->fold(empty));
  EXPECT_EQ(empty.events.size() + 1, story.events.size());
  story.image = disk.content();
  for (const auto& [name, bytes] : story.image) {
    if (kind_of(name) == FileKind::kJournal) story.segments.push_back(name);
  }
  EXPECT_EQ(story.segments.size(), 1U);
  return story;
}

TEST(Cut, H77_ASnapshotWithNothingBehindItHasLostItsEnd) {
  const Story story = write_folded_story();
  const std::string& last = story.segments.front();
  Image image = story.image;
  image.erase(last);
  ASSERT_EQ(open(story.image, OnDamage::kRefuse).events, story.events);

  const Opened refused = open(image, OnDamage::kRefuse);
  const Opened cut = open(image, OnDamage::kCut);

  ASSERT_TRUE(refused.error) << "an acknowledged entry was lost, and nobody was told";
  EXPECT_EQ(*refused.error, Code::kDamaged);
  const std::string& message = refused.error->message();
  EXPECT_NE(message.find("sim/" + last + ": the file is missing"), std::string::npos) << message;
  EXPECT_NE(message.find("--cut-damage"), std::string::npos) << message;
  EXPECT_NE(message.find("after zxid " + zxid_text(cut.recovered.last_zxid)), std::string::npos)
      << message;
  EXPECT_EQ(refused.after, image);
  ASSERT_FALSE(cut.error) << *cut.error;
  EXPECT_EQ(cut.events, Events(story.events.begin(), story.events.end() - 1));
  EXPECT_NE(describe(cut.recovered).find("CUT OFF"), std::string::npos);
  EXPECT_EQ(open(cut.after, OnDamage::kRefuse).events, cut.events) << "it is for one start";
}

TEST(Cut, ADamagedSnapshotIsNotCut) {
  Image image = write_folded_story().image;
  for (auto& [name, bytes] : image) {
    if (kind_of(name) == FileKind::kSnapshot) flip(bytes, kSector + 100);
  }

  const Opened opened = open(image, OnDamage::kCut);

  ASSERT_TRUE(opened.error);
  EXPECT_EQ(*opened.error, Code::kDamaged);
  EXPECT_NE(opened.error->message().find("every file but \"epoch\""), std::string::npos)
      << *opened.error;
}

/// Power is lost at every call while epochs begin.
TEST(Epoch, H82_ACrashAtAnyMomentIsNotTakenForALoss) {
  bool failed = true;
  for (std::uint64_t nth = 0; failed; ++nth) {
    SimDisk disk(nth);
    std::int64_t acknowledged = 0;
    {
      History state;
      const auto journal = FileJournal::open(disk.files(), options(OnDamage::kRefuse), state);
      disk.fail_at(nth, Fault::kLosePower);
      for (std::int64_t epoch = 1; epoch <= 3; ++epoch) {
        if (!(*journal)->append(entries_of({{zxid(epoch, 0), "x"}}))) break;
        acknowledged = epoch;
      }
    }
    failed = disk.has_failed();
    disk.lose_power();

    const Opened opened = open(disk.content(), OnDamage::kRefuse);

    ASSERT_FALSE(opened.error) << "call " << nth << ": " << *opened.error;
    EXPECT_GE(opened.recovered.epoch, acknowledged) << "call " << nth;
    EXPECT_GE(opened.events.size(), static_cast<std::size_t>(acknowledged)) << "call " << nth;
  }
}

TEST(Epoch, AnythingElseInItsFileIsRefused) {
  const Story story = write_story();
  const std::string& text = story.image.at(kEpochName);
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    Image image = story.image;
    image[kEpochName][bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));

    const Opened opened = open(image, OnDamage::kRefuse);

    ASSERT_TRUE(opened.error) << bit;
    ASSERT_EQ(*opened.error, Code::kDamaged) << bit;
  }
}

TEST(Folder, OneThatHoldsSomethingElseIsRefusedAndLeftAlone) {
  for (const char* name : {"version-2", "photo.jpg"}) {
    const Image image{{name, "theirs"}};

    const Opened opened = open(image, OnDamage::kRefuse);

    ASSERT_TRUE(opened.error) << name;
    EXPECT_EQ(*opened.error, Code::kStorage);
    EXPECT_NE(opened.error->message().find(name), std::string::npos) << *opened.error;
    EXPECT_EQ(opened.error->message().find("Apache") != std::string::npos,
              std::string(name) == "version-2");
    EXPECT_EQ(opened.after, image);
  }
  for (const char* name : {"lost+found", "lock", "spare.tmp"}) {
    EXPECT_FALSE(open({{name, ""}}, OnDamage::kRefuse).error) << name;
  }
}

TEST(Folder, AJournalOfOursMayHaveCompany) {
  Image image = write_story().image;
  image["notes.txt"] = "theirs";

  EXPECT_FALSE(open(image, OnDamage::kRefuse).error);
}

/// A state that says at the nth question that it is not wanted any more.
class Fickle final : public State {
 public:
  explicit Fickle(int patience) : patience_(patience) {}
  Result<void> load(std::string_view item) override { return history_.load(item); }
  Result<void> replay(const Entry& entry) override { return history_.replay(entry); }
  void save(base::FunctionRef<void(std::string_view)> sink) const override { history_.save(sink); }
  bool is_cancelled() const override { return ++asked_ > patience_; }

 private:
  History history_;
  int patience_;
  mutable int asked_ = 0;
};

TEST(Fold, CanBeCancelledAtAnyPointAndLosesNothing) {
  Result<void> folded = Error{Code::kClosed, "not yet"};
  for (int patience = 0; !folded; ++patience) {
    ASSERT_LT(patience, 1'000);
    SimDisk disk(write_story().image);
    History before;
    const auto journal = FileJournal::open(disk.files(), options(OnDamage::kRefuse), before);
    ASSERT_TRUE((*journal)->needs_folding());
    Fickle state(patience);

    folded = (*journal)->fold(state);

    if (!folded) {
      EXPECT_EQ(folded.error(), Code::kClosed);
    }
    EXPECT_FALSE(disk.content().contains(kHalfSnapshotName));
    EXPECT_EQ(open(disk.content(), OnDamage::kRefuse).events, before.events) << patience;
  }
}

TEST(Recovery, CanBeCancelledAtAnyPointAndChangesNothing) {
  const auto image = write_story().image;
  const auto whole = open(image, OnDamage::kRefuse).events;
  bool opened = false;
  for (int patience = 0; !opened; ++patience) {
    ASSERT_LT(patience, 1'000);
    SimDisk disk(image);
    Fickle state(patience);

    const auto journal = FileJournal::open(disk.files(), options(OnDamage::kRefuse), state);

    opened = journal.has_value();
    if (!opened) {
      EXPECT_EQ(journal.error(), Code::kClosed);
    }
    EXPECT_EQ(open(disk.content(), OnDamage::kRefuse).events, whole) << patience;
    EXPECT_TRUE(patience > 0 || !opened) << "nobody asked";
  }
}

}  // namespace
}  // namespace latchkey::storage
