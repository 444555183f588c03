#include <gtest/gtest.h>

#include "storage/checksum.hpp"
#include "storage/file_journal.hpp"
#include "storage/format.hpp"
#include "storage/history.hpp"
#include "storage/sim_disk.hpp"

namespace latchkey::storage {
namespace {

using Events = std::vector<History::Event>;
using Image = std::map<std::string, std::string>;

const FileJournalOptions kOneSegment{
    .segment_bytes = 3072, .fold_bytes = 1, .spare = Spare::kInAppend};

struct Reopened {
  Result<std::unique_ptr<FileJournal>> journal;
  Events events;
};

Reopened open_image(const Image& image) {
  SimDisk disk(image);
  History state;
  auto journal = FileJournal::open(disk.files(), kOneSegment, state);
  return {std::move(journal), state.events};
}

enum class Stop { kCrash, kClose };

/// A folder with a snapshot, a finished segment and one that is being filled, and all that is in
/// it.
struct Written {
  Image image;
  Events events;
};

void append_to_story(Journal& journal, const Events& batch, Written& story) {
  ASSERT_TRUE(journal.append(entries_of(batch)));
  story.events.insert(story.events.end(), batch.begin(), batch.end());
}

Written write_three_files(Stop stop, const Events& last,
                          const FileJournalOptions& options = kOneSegment) {
  Written story;
  SimDisk disk(1);
  History state;
  const auto journal = FileJournal::open(disk.files(), options, state);
  std::int64_t zxid = 0;
  while (!(*journal)->needs_folding())
    append_to_story(**journal, {{++zxid, "in the snapshot"}}, story);
  History empty;
  EXPECT_TRUE((*journal)->fold(empty));
  while (!(*journal)->needs_folding()) append_to_story(**journal, {{++zxid, "finished"}}, story);
  append_to_story(**journal, {{200, "almost the last"}, {201, ""}}, story);
  append_to_story(**journal, last, story);
  if (stop == Stop::kClose) {
    EXPECT_TRUE((*journal)->close());
  }
  story.image = disk.content();
  return story;
}

std::string newest_segment(const Image& image) {
  std::string newest;
  for (const auto& [name, bytes] : image) {
    if (kind_of(name) == FileKind::kJournal) newest = name;
  }
  return newest;
}

std::size_t end_of(const std::string& bytes) {
  return (bytes.find_last_not_of('\0') + kSector) / kSector * kSector;
}

const Events kLast{{300, std::string(700, 'x')}, {301, "end"}};

TEST(Damage, H77_WhatIsWholeIsFedBack) {
  for (const Stop stop : {Stop::kCrash, Stop::kClose}) {
    const Written story = write_three_files(stop, kLast);

    const Reopened opened = open_image(story.image);

    ASSERT_TRUE(opened.journal) << opened.journal.error();
    EXPECT_EQ(opened.events, story.events);
    EXPECT_EQ((*opened.journal)->recovered().closed_cleanly, stop == Stop::kClose);
    EXPECT_GT((*opened.journal)->recovered().items, 0U);
  }
}

/// The last batch breaks off at every byte, with zeros behind.
TEST(Damage, H77_ATornTailIsCutAtEveryByte) {
  const Written story = write_three_files(Stop::kCrash, kLast);
  const std::string newest = newest_segment(story.image);
  const std::size_t end = end_of(story.image.at(newest));
  const Events before(story.events.begin(), story.events.end() - 2);

  for (std::size_t cut = end - 2 * kSector; cut < end; ++cut) {
    Image image = story.image;
    image[newest].resize(cut);
    image[newest].resize(story.image.at(newest).size(), '\0');

    const Reopened opened = open_image(image);

    ASSERT_TRUE(opened.journal) << "cut at " << cut << ": " << opened.journal.error();
    ASSERT_EQ(opened.events, before) << "cut at " << cut;
    ASSERT_FALSE((*opened.journal)->recovered().closed_cleanly);
  }
}

/// A segment has its full length before it has its name, so no crash makes it shorter.
TEST(Damage, H77_ASegmentThatIsShorterThanItWasMadeIsRefused) {
  for (const Stop stop : {Stop::kCrash, Stop::kClose}) {
    const Written story = write_three_files(stop, kLast);
    const std::string newest = newest_segment(story.image);
    for (std::size_t size = 0; size < story.image.at(newest).size(); ++size) {
      Image image = story.image;
      image[newest].resize(size);

      const Reopened opened = open_image(image);

      ASSERT_FALSE(opened.journal) << "cut at " << size;
      ASSERT_EQ(opened.journal.error(), Code::kDamaged) << "cut at " << size;
    }
  }
}

/// A batch that does not fit gets a segment that is long enough from the start.
TEST(Damage, H77_ALongSegmentThatWasCutIsRefused) {
  const Written story = write_three_files(Stop::kCrash, {{300, std::string(10'000, 'x')}});
  const std::string newest = newest_segment(story.image);
  ASSERT_TRUE(open_image(story.image).journal);
  Image image = story.image;
  image[newest].resize(kOneSegment.segment_bytes);

  const Reopened opened = open_image(image);

  ASSERT_FALSE(opened.journal);
  EXPECT_EQ(opened.journal.error(), Code::kDamaged);
}

TEST(Damage, H77_ATailWithAnySectorMissingIsCut) {
  const Written story = write_three_files(Stop::kCrash, {{300, std::string(1200, '\0')}});
  const std::string newest = newest_segment(story.image);
  const std::size_t end = end_of(story.image.at(newest));
  const Events before(story.events.begin(), story.events.end() - 1);

  for (unsigned missing = 1; missing < 8; ++missing) {
    Image image = story.image;
    for (unsigned sector = 0; sector < 3; ++sector) {
      if ((missing >> sector & 1U) == 0) continue;
      image[newest].replace(end - (sector + 1) * kSector, kSector, kSector, '\0');
    }

    const Reopened opened = open_image(image);

    ASSERT_TRUE(opened.journal) << missing << ": " << opened.journal.error();
    EXPECT_EQ(opened.events, before) << missing;
    EXPECT_EQ((*opened.journal)->recovered().bytes_cut == 0, missing == 7) << missing;
  }
}

/// Every flipped bit of a file is refused, or it lies where nothing was stored.
void flip_every_bit(const Written& story, const std::string& name) {
  const std::string& bytes = story.image.at(name);
  const std::size_t end = end_of(bytes);
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Image image = story.image;
    image[name][bit / 8] = static_cast<char>(image[name][bit / 8] ^ (1 << bit % 8));

    const Reopened opened = open_image(image);

    if (opened.journal) {
      ASSERT_GE(bit / 8, end) << name << " bit " << bit << " was accepted";
      ASSERT_EQ(opened.events, story.events) << name << " bit " << bit;
      continue;
    }
    ++refused;
    ASSERT_EQ(opened.journal.error(), Code::kDamaged) << name << " bit " << bit;
    const std::string& message = opened.journal.error().message();
    ASSERT_NE(message.find("sim/" + name + ": "), std::string::npos) << message;
    ASSERT_NE(message.find(", at offset "), std::string::npos) << message;
    ASSERT_NE(message.find("Restore the folder from a copy"), std::string::npos) << message;
  }
  EXPECT_GE(refused, end * 8);
}

/// A snapshot, two finished segments and the newest one, each as short as can be.
Written short_story(Stop stop) {
  return write_three_files(stop, {{300, "the last one"}},
                           {.segment_bytes = 2048, .fold_bytes = 1, .spare = Spare::kInAppend});
}

std::string oldest(const Image& image, FileKind kind) {
  for (const auto& [name, bytes] : image) {
    if (kind_of(name) == kind) return name;
  }
  return {};
}

TEST(Damage, H77_AnyFlippedBitOfASnapshotIsRefused) {
  const Written story = short_story(Stop::kCrash);
  flip_every_bit(story, oldest(story.image, FileKind::kSnapshot));
}

TEST(Damage, H77_AnyFlippedBitOfAFinishedSegmentIsRefusedOrHarmless) {
  const Written story = short_story(Stop::kCrash);
  ASSERT_NE(oldest(story.image, FileKind::kJournal), newest_segment(story.image));
  flip_every_bit(story, oldest(story.image, FileKind::kJournal));
}

TEST(Damage, H77_AnyFlippedBitAfterACrashIsRefusedOrHarmless) {
  const Written story = short_story(Stop::kCrash);
  flip_every_bit(story, newest_segment(story.image));
}

TEST(Damage, H77_AnyFlippedBitAfterACloseIsRefusedOrHarmless) {
  const Written story = short_story(Stop::kClose);
  flip_every_bit(story, newest_segment(story.image));
}

TEST(Damage, H77_AFlippedBitInALongLastBatchOfZerosIsRefused) {
  const Written story = write_three_files(Stop::kCrash, {{300, std::string(1500, '\0')}});
  const std::string newest = newest_segment(story.image);
  const std::size_t end = end_of(story.image.at(newest));

  for (std::size_t at = end - 4 * kSector; at < end; ++at) {
    Image image = story.image;
    image[newest][at] = static_cast<char>(image[newest][at] ^ 0x10);

    ASSERT_FALSE(open_image(image).journal) << at;
  }
}

TEST(Damage, H77_ABatchInFrontOfOthersIsNotCutWhateverItLooksLike) {
  const Written story = write_three_files(Stop::kCrash, kLast);
  const std::string newest = newest_segment(story.image);
  Image image = story.image;
  image[newest].replace(kSector, kSector, kSector, '\0');

  const Reopened opened = open_image(image);

  ASSERT_FALSE(opened.journal);
  EXPECT_EQ(opened.journal.error(), Code::kDamaged);
}

TEST(Damage, H77_AnEndMarkProtectsTheBatchBeforeIt) {
  const Written story = write_three_files(Stop::kClose, kLast);
  const std::string newest = newest_segment(story.image);
  const std::size_t mark = end_of(story.image.at(newest)) - kSector;
  Image image = story.image;
  image[newest].replace(mark - kSector, kSector, kSector, '\0');

  EXPECT_FALSE(open_image(image).journal);
}

TEST(Damage, H77_AMissingFileInTheChainIsNamed) {
  const Written story = write_three_files(Stop::kClose, kLast);
  for (const auto& [name, bytes] : story.image) {
    if (!kind_of(name) || name == newest_segment(story.image)) continue;
    Image image = story.image;
    image.erase(name);

    const Reopened opened = open_image(image);

    ASSERT_FALSE(opened.journal) << name;
    EXPECT_EQ(opened.journal.error(), Code::kDamaged);
    EXPECT_NE(opened.journal.error().message().find("missing"), std::string::npos)
        << opened.journal.error();
  }
}

TEST(Damage, H77_BatchesOfAnotherSegmentOrInAnotherOrderAreRefused) {
  const Written story = write_three_files(Stop::kCrash, {{300, "the last one"}});
  const std::string newest = newest_segment(story.image);
  const std::string other = std::prev(story.image.find(newest))->first;
  const std::string& bytes = story.image.at(newest);
  Image from_another = story.image;
  from_another[newest].replace(kSector, kSector, story.image.at(other), kSector, kSector);
  Image swapped = story.image;
  swapped[newest].replace(kSector, kSector, bytes, 2 * kSector, kSector);
  swapped[newest].replace(2 * kSector, kSector, bytes, kSector, kSector);
  Image dropped = story.image;
  dropped[newest].replace(kSector, kSector, bytes, 2 * kSector, kSector);
  Image repeated = story.image;
  repeated[newest].replace(end_of(bytes), kSector, bytes, kSector, kSector);

  for (const Image& image : {from_another, swapped, dropped, repeated}) {
    const Reopened opened = open_image(image);
    ASSERT_FALSE(opened.journal);
    EXPECT_EQ(opened.journal.error(), Code::kDamaged);
  }
}

/// A disk that brings back what once stood in the same place: whole, and with the right number.
TEST(Damage, H77_AnOlderBatchInThePlaceOfALaterOneIsRefused) {
  const auto go_on = [](const Image& image, const Events& events) {
    SimDisk disk(image);
    History state;
    const auto journal = FileJournal::open(disk.files(), kOneSegment, state);
    for (const auto& event : events) EXPECT_TRUE((*journal)->append(entries_of({event})));
    return disk.content();
  };
  const Image base = go_on({}, {{1, "first"}});
  const std::string name = newest_segment(base);
  const std::size_t end = end_of(base.at(name));
  const Image once = go_on(base, {{2, "never acknowledged, and cut"}});
  Image now = go_on(base, {{2, "acknowledged"}, {3, "and more"}});
  ASSERT_EQ(newest_segment(now), name);
  ASSERT_TRUE(open_image(now).journal);
  now[name].replace(end, kSector, once.at(name), end, kSector);

  const Reopened opened = open_image(now);

  ASSERT_FALSE(opened.journal);
  EXPECT_EQ(opened.journal.error(), Code::kDamaged);
}

TEST(Damage, AFileUnderAnotherNameIsRefused) {
  const Written story = write_three_files(Stop::kCrash, kLast);
  const std::string newest = newest_segment(story.image);
  Image image = story.image;
  image[file_name(FileKind::kJournal, {77, 0, 1000})] = image[newest];
  image.erase(newest);

  const Reopened opened = open_image(image);

  ASSERT_FALSE(opened.journal);
  EXPECT_NE(opened.journal.error().message().find(newest), std::string::npos);
}

TEST(Damage, H79_ASnapshotWhoseItemsDoNotMatchTheirDigestIsRefused) {
  const Written story = write_three_files(Stop::kClose, kLast);
  Image image = story.image;
  std::string& snapshot = image[oldest(image, FileKind::kSnapshot)];
  char* end_mark = snapshot.data() + snapshot.size() - kSector;
  char* digest = end_mark + kBatchHeaderBytes + kRecordHeaderBytes;
  put_number(digest, get_number<std::uint64_t>(digest) ^ 1U);
  const std::size_t end = kSector - kChecksumBytes;
  const auto salt = get_number<std::uint64_t>(&snapshot[16]);
  put_number(end_mark + end, checksum({end_mark, end}, salt));

  const Reopened opened = open_image(image);

  ASSERT_FALSE(opened.journal);
  EXPECT_EQ(opened.journal.error(), Code::kDamaged);
  EXPECT_NE(opened.journal.error().message().find("digest"), std::string::npos)
      << opened.journal.error();
}

void set_version(std::string& file, std::uint32_t version) {
  const std::size_t end = kSector - kChecksumBytes;
  put_number(&file[8], version);
  put_number(&file[end], checksum({file.data(), end}, 0));
}

TEST(Damage, ANewerFormatIsRefusedPlainly) {
  for (const FileKind kind : {FileKind::kJournal, FileKind::kSnapshot}) {
    const Written story = write_three_files(Stop::kClose, kLast);
    Image image = story.image;
    for (auto& [name, bytes] : image) {
      if (kind_of(name) == kind) set_version(bytes, kFormatVersion + 1);
    }

    const Reopened opened = open_image(image);

    ASSERT_FALSE(opened.journal);
    EXPECT_EQ(opened.journal.error(), Code::kStorage);
    EXPECT_NE(opened.journal.error().message().find("format version 2, this program knows 1"),
              std::string::npos)
        << opened.journal.error();
  }
}

}  // namespace
}  // namespace latchkey::storage
