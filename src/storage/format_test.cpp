#include "storage/format.hpp"

#include <bit>

#include <gtest/gtest.h>

#include "storage/checksum.hpp"

namespace latchkey::storage {
namespace {

const Place kPlace{7, 0x1234, 0x100000005};

TEST(Format, AFileHeaderComesBackAsItWas) {
  const FileHeader header{FileKind::kSnapshot, 99, kPlace};

  const auto decoded = decode_file_header(encode(header));

  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->kind, header.kind);
  EXPECT_EQ(decoded->salt, header.salt);
  EXPECT_EQ(decoded->after, header.after);
}

TEST(Format, NamesSayWhatIsInAFileAndSortAsTheFilesFollow) {
  EXPECT_EQ(file_name(FileKind::kJournal, kPlace), "journal-0000000100000006-0000000000000008");
  EXPECT_EQ(file_name(FileKind::kSnapshot, kPlace), "snapshot-0000000100000005-0000000000000007");
  EXPECT_LT(file_name(FileKind::kJournal, {7, 0, 5}), file_name(FileKind::kJournal, {8, 0, 5}));
  EXPECT_LT(file_name(FileKind::kJournal, {9, 0, 5}), file_name(FileKind::kJournal, {10, 0, 16}));
}

TEST(Format, OnlyWholeNamesAreOurs) {
  EXPECT_EQ(kind_of(file_name(FileKind::kJournal, kPlace)), FileKind::kJournal);
  EXPECT_EQ(kind_of(file_name(FileKind::kSnapshot, kPlace)), FileKind::kSnapshot);
  for (const std::string name :
       {"", "lock", "journal-", "journal-0000000100000006-0000000000000008.bad", "snapshot.tmp",
        "journal-0000000100000006+0000000000000008", "journal-000000010000000X-0000000000000008"}) {
    EXPECT_EQ(kind_of(name), std::nullopt) << name;
  }
}

/// Seals the records and reads them again.
std::vector<Entry> there_and_back(std::string& bytes, const std::vector<Entry>& records) {
  Batch batch;
  for (const Entry& record : records) batch.add(record.zxid, record.bytes);
  const Place after = batch.seal(BatchKind::kEntries, kPlace, 5);
  EXPECT_EQ(after.sequence, kPlace.sequence + 1);
  bytes = batch.bytes();

  const auto header = decode_batch_header(bytes, 5);
  EXPECT_TRUE(header);
  EXPECT_EQ(header->chain, kPlace.chain);
  EXPECT_EQ(header->sectors * kSector, bytes.size());
  EXPECT_FALSE(decode_batch_header(bytes, 6)) << "the salt of another file";
  std::vector<Entry> decoded;
  EXPECT_TRUE(decode_records(bytes.data(), *header, decoded));
  return decoded;
}

TEST(Format, ABatchComesBackAsItWas) {
  std::string bytes;
  for (const std::size_t size : {0U, 1U, 400U, 443U, 444U, 445U, 5000U}) {
    const std::string text(size, 'x');
    const auto decoded = there_and_back(bytes, {{9, "a"}, {10, text}});
    ASSERT_EQ(decoded.size(), 2U) << size;
    EXPECT_EQ(decoded[0].zxid, 9);
    EXPECT_EQ(decoded[0].bytes, "a");
    EXPECT_EQ(decoded[1].zxid, 10);
    EXPECT_EQ(decoded[1].bytes, text);
  }
}

int bits_in(std::string_view sector) {
  int bits = 0;
  for (const char byte : sector) bits += std::popcount(static_cast<unsigned char>(byte));
  return bits;
}

TEST(Format, H77_NoSectorOfABatchIsOneBitFromZero) {
  for (std::size_t one_bit = 0; one_bit < 20000; one_bit += 37) {
    std::string zeros(20000, '\0');
    zeros[one_bit] = 4;
    std::string bytes;
    Batch batch;
    batch.add(1, zeros);
    batch.seal(BatchKind::kEntries, kPlace, 5);

    for (std::size_t at = 0; at < batch.bytes().size(); at += kSector) {
      ASSERT_GE(bits_in(batch.bytes().substr(at, kSector)), 2) << at;
    }
    const auto decoded = there_and_back(bytes, {{1, zeros}});
    ASSERT_EQ(decoded[0].bytes, zeros);
  }
}

TEST(Format, H77_ChecksumsNeverEndInZeroNorOneBitBesideIt) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const std::uint64_t sum = checksum("text", seed);
    EXPECT_GE(std::popcount(sum >> 56U), 2);
  }
}

TEST(Format, RecordsThatDoNotAddUpAreRefused) {
  Batch batch;
  batch.add(1, "abc");
  batch.seal(BatchKind::kEntries, kPlace, 5);
  auto header = decode_batch_header(batch.bytes(), 5);
  std::vector<Entry> decoded;
  for (const std::uint32_t count : {0U, 1000000U}) {
    std::string bytes(batch.bytes());
    header->count = count;
    EXPECT_FALSE(decode_records(bytes.data(), *header, decoded)) << count;
  }
}

TEST(Digest, KnowsWhereAPieceEnds) {
  Digest one;
  one.add("ab");
  one.add("c");
  Digest other;
  other.add("a");
  other.add("bc");
  Digest same;
  same.add("ab");
  same.add("c");

  EXPECT_NE(one.value(), other.value());
  EXPECT_EQ(one.value(), same.value());
}

}  // namespace
}  // namespace latchkey::storage
