#include "archive/tar.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/test_dataset.h"

namespace stoker::archive {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;

struct StringSink final : ByteSink {
  std::string bytes;
  Status write(std::span<const std::byte> data) override {
    bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
    return {};
  }
};

std::string archive(const std::vector<std::pair<std::string, std::string>>& members) {
  StringSink sink;
  TarWriter writer(sink);
  for (const auto& [name, data] : members)
    EXPECT_TRUE(writer.add(name, dataset::bytes_of(data)).ok()) << name;
  EXPECT_TRUE(writer.finish().ok());
  return sink.bytes;
}

TarReader reader_of(const std::string& bytes) {
  return TarReader(
      [&bytes](std::uint64_t offset, std::span<std::byte> out) -> Status {
        EXPECT_LE(offset + out.size(), bytes.size());
        std::memcpy(out.data(), bytes.data() + offset, out.size());
        return {};
      },
      bytes.size(), "a.tar");
}

// All members, or the error that ended them.
Result<std::vector<TarMember>> read_all(const std::string& bytes, bool* clean = nullptr) {
  TarReader reader = reader_of(bytes);
  std::vector<TarMember> members;
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(member, reader.next());
    if (!member) break;
    members.push_back(*member);
  }
  if (clean != nullptr) *clean = reader.has_end_mark();
  return members;
}

std::string error_of(const std::string& bytes) {
  const Result<std::vector<TarMember>> members = read_all(bytes);
  return members.ok() ? "no error" : std::string(members.error().message());
}

// Sets a header's checksum after a test has changed the header at `offset`.
void seal(std::string& bytes, std::size_t offset = 0) {
  std::memset(bytes.data() + offset + 148, ' ', 8);
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[offset + i]);
  std::snprintf(bytes.data() + offset + 148, 8, "%06o", sum);
}

TEST(TarWriter, writes_the_canonical_header_byte_by_byte) {
  const std::string bytes = archive({{"cat/1.jpg", "meow"}});
  ASSERT_EQ(bytes.size(), kTarRecord);
  EXPECT_EQ(bytes.substr(0, 10), std::string("cat/1.jpg\0", 10));
  EXPECT_EQ(bytes.substr(100, 48), std::string("0000444\0"
                                               "0000000\0"
                                               "0000000\0"
                                               "00000000004\0"
                                               "00000000000\0",
                                               48));
  EXPECT_EQ(bytes.substr(156, 1), "0");
  EXPECT_EQ(bytes.substr(257, 8), std::string("ustar\0"
                                              "00",
                                              8));
  EXPECT_EQ(bytes.substr(265, 64), std::string(64, '\0'));
  EXPECT_EQ(bytes.substr(512, 4), "meow");
  EXPECT_EQ(bytes.substr(516), std::string(kTarRecord - 516, '\0'));
}

TEST(TarWriter, sizes_are_known_before_writing) {
  const std::string long_name = std::string(200, 'd') + "/" + std::string(120, 'f');
  std::uint64_t members = 0;
  for (const std::string& name : {std::string("a"), long_name}) members += tar_member_bytes(name, 700);
  EXPECT_EQ(archive({{"a", std::string(700, 'x')}, {long_name, std::string(700, 'x')}}).size(),
            tar_archive_bytes(members));
}

TEST(TarWriter, uses_pax_only_for_names_that_ustar_cannot_hold) {
  const std::string fits = std::string(150, 'd') + "/" + std::string(100, 'f');
  const std::string does_not = std::string(156, 'd') + "/f";
  EXPECT_EQ(tar_member_bytes(fits, 0), 512u);
  EXPECT_EQ(tar_member_bytes(does_not, 0), 512u + 1024u);
  const auto members = read_all(archive({{fits, "1"}, {does_not, "2"}, {"last", "3"}}));
  ASSERT_TRUE(members.ok()) << members.error().to_string();
  EXPECT_THAT(*members, ElementsAre(Field(&TarMember::name, fits), Field(&TarMember::name, does_not),
                                    Field(&TarMember::name, "last")));
  EXPECT_EQ((*members)[1].header_offset, 1024u);
  EXPECT_EQ((*members)[1].data_offset, 1024u + 1536u);
}

TEST(TarWriter, stores_sizes_beyond_8_GiB_in_pax_headers) {
  StringSink sink;
  TarWriter writer(sink);
  ASSERT_TRUE(writer.begin("big", std::uint64_t{9} << 30).ok());
  EXPECT_NE(sink.bytes.find("19 size=9663676416\n"), std::string::npos);
  EXPECT_EQ(writer.end().message(), "tar member: 9663676416 bytes short of the announced size");
}

TEST(TarWriter, rejects_unsafe_names) {
  StringSink sink;
  TarWriter writer(sink);
  const auto refusal = [&](std::string_view name) {
    return std::string(writer.add(name, {}).status().message());
  };
  EXPECT_EQ(refusal(""), "tar member '': empty name");
  EXPECT_EQ(refusal("/etc/passwd"), "tar member '/etc/passwd': absolute name");
  EXPECT_EQ(refusal("a/../b"), "tar member 'a/../b': empty, '.' or '..' part in the name");
  EXPECT_EQ(refusal("a//b"), "tar member 'a//b': empty, '.' or '..' part in the name");
  EXPECT_EQ(refusal(std::string_view("a\0b", 3)), "tar member 'a\\x00b': NUL byte in the name");
  EXPECT_EQ(refusal(std::string(5000, 'a')),
            "tar member '" + std::string(80, 'a') + "': name longer than 4096 bytes");
  EXPECT_TRUE(sink.bytes.empty());
}

TEST(TarReader, reads_the_written_members) {
  bool clean = false;
  const std::string bytes =
      archive({{"a.jpg", "12345"}, {"b/c.json", ""}, {"b/c.png", std::string(512, 'x')}});
  const auto members = read_all(bytes, &clean);
  ASSERT_TRUE(members.ok());
  EXPECT_TRUE(clean);
  EXPECT_THAT(*members, ElementsAre(AllOf(Field(&TarMember::name, "a.jpg"), Field(&TarMember::size, 5u),
                                          Field(&TarMember::data_offset, 512u)),
                                    AllOf(Field(&TarMember::name, "b/c.json"), Field(&TarMember::size, 0u),
                                          Field(&TarMember::data_offset, 1536u)),
                                    AllOf(Field(&TarMember::name, "b/c.png"), Field(&TarMember::size, 512u),
                                          Field(&TarMember::data_offset, 2048u))));
}

TEST(TarReader, reads_concatenated_archives) {
  const auto members = read_all(archive({{"a", "1"}}) + archive({{"b", "2"}}));
  ASSERT_TRUE(members.ok());
  EXPECT_THAT(*members, ElementsAre(Field(&TarMember::name, "a"), Field(&TarMember::name, "b")));
}

TEST(TarReader, reads_members_behind_a_lone_zero_block_and_reports_it) {
  const std::string first = archive({{"a", "1"}});
  for (const std::uint64_t blocks : {1u, 2u}) {
    const std::string bytes = first.substr(0, 1024 + blocks * kTarBlock) + archive({{"b", "2"}});
    TarReader reader = reader_of(bytes);
    EXPECT_EQ(reader.next().value()->name, "a");
    EXPECT_EQ(reader.next().value()->name, "b");
    EXPECT_FALSE(reader.next().value().has_value());
    EXPECT_TRUE(reader.has_end_mark());
    EXPECT_EQ(reader.lone_zero_block(), blocks == 1 ? std::optional<std::uint64_t>(1024) : std::nullopt);
  }
}

TEST(TarReader, a_lone_zero_block_is_no_end_mark) {
  bool clean = true;
  ASSERT_TRUE(read_all(archive({{"a", "1"}}).substr(0, 1536), &clean).ok());
  EXPECT_FALSE(clean);
}

TEST(TarReader, reports_a_missing_end_mark) {
  bool clean = true;
  const auto members = read_all(archive({{"a", "1"}}).substr(0, 1024), &clean);
  ASSERT_TRUE(members.ok());
  EXPECT_EQ(members->size(), 1u);
  EXPECT_FALSE(clean);
}

TEST(TarReader, reads_gnu_long_names_and_base_256_sizes) {
  const std::string name(300, 'n');
  std::string bytes = archive({{"LongLink", name + '\0'}, {"short", "data"}});
  bytes[156] = 'L';
  seal(bytes);
  const std::size_t header = 1024;
  std::memset(bytes.data() + header + 124, 0, 12);
  bytes[header + 124] = static_cast<char>(0x80);
  bytes[header + 135] = 4;
  seal(bytes, header);
  const auto members = read_all(bytes);
  ASSERT_TRUE(members.ok()) << members.error().to_string();
  EXPECT_THAT(*members, ElementsAre(AllOf(Field(&TarMember::name, name), Field(&TarMember::size, 4u),
                                          Field(&TarMember::header_offset, 0u))));
}

TEST(TarReader, flags_members_with_unsafe_names) {
  std::string bytes = archive({{"xx/evil.jpg", "1"}, {"xetc", "1"}, {"a.jpg", "1"}});
  std::memcpy(bytes.data(), "..", 2);
  seal(bytes);
  bytes[1024] = '/';
  seal(bytes, 1024);
  bytes[2048] = '\n';
  seal(bytes, 2048);
  const auto members = read_all(bytes);
  ASSERT_TRUE(members.ok());
  EXPECT_THAT(*members, ElementsAre(Field(&TarMember::unsafe, "'..' in the name"),
                                    Field(&TarMember::unsafe, "absolute name"),
                                    Field(&TarMember::unsafe, "control byte or invalid UTF-8 in the name")));
}

TEST(TarReader, distinguishes_links_and_folders_from_files) {
  std::string bytes = archive({{"link", ""}, {"folder", ""}, {"hard", ""}});
  bytes[156] = '2';
  seal(bytes);
  bytes[512 + 156] = '5';
  seal(bytes, 512);
  bytes[1024 + 156] = '1';
  seal(bytes, 1024);
  const auto members = read_all(bytes);
  ASSERT_TRUE(members.ok());
  EXPECT_THAT(*members, ElementsAre(Field(&TarMember::kind, TarKind::symbolic_link),
                                    Field(&TarMember::kind, TarKind::directory),
                                    Field(&TarMember::kind, TarKind::hard_link)));
}

TEST(TarReader, reports_damage_with_its_offset) {
  const std::string good = archive({{"a.jpg", "12345"}, {"b.jpg", std::string(600, 'x')}});
  EXPECT_EQ(error_of(good.substr(0, 100)), "a.tar: byte 0: ends inside a header (100 of 512 bytes)");
  EXPECT_EQ(error_of(good.substr(0, 2000)),
            "a.tar: byte 1024: member 'b.jpg' of 600 bytes reaches 136 bytes beyond the end");
  std::string flipped = good;
  flipped[1030] ^= 1;
  EXPECT_EQ(error_of(flipped), "a.tar: byte 1024: not a tar header (checksum)");
  std::string no_number = good;
  no_number[124] = 'z';
  seal(no_number);
  EXPECT_EQ(error_of(no_number), "a.tar: byte 0: not a number in the size field");
}

TEST(TarReader, refuses_sparse_files_and_unknown_kinds_by_name) {
  std::string sparse = archive({{"disk.img", ""}});
  sparse[156] = 'S';
  seal(sparse);
  EXPECT_EQ(error_of(sparse), "a.tar: byte 0: member 'disk.img' is a sparse file, which is not supported");
  std::string volume = archive({{"part", ""}});
  volume[156] = 'M';
  seal(volume);
  EXPECT_EQ(error_of(volume), "a.tar: byte 0: member 'part' has type 'M', which is not supported");
  std::string pax = archive({{"h", "22 GNU.sparse.major=1\n"}, {"disk.img", ""}});
  pax[156] = 'x';
  seal(pax);
  EXPECT_EQ(error_of(pax), "a.tar: byte 0: sparse file (pax 'GNU.sparse.major'), which is not supported");
}

TEST(TarReader, bounds_extended_headers) {
  std::string name = archive({{"h", std::string(6000, 'n')}, {"a", ""}});
  name[156] = 'L';
  seal(name);
  EXPECT_EQ(error_of(name), "a.tar: byte 0: extended header of 6000 bytes, more than 4097");
  for (std::string_view record : {"x", "999 path=a\n", "5 pa\n", "8 =abc\n", "-1 path=a\n"}) {
    std::string bytes = archive({{"h", std::string(record)}, {"a", ""}});
    bytes[156] = 'x';
    seal(bytes);
    EXPECT_EQ(error_of(bytes), "a.tar: byte 0: malformed pax record") << record;
  }
  std::string lonely = archive({{"h", "10 path=a\n"}});
  lonely[156] = 'x';
  seal(lonely);
  EXPECT_EQ(error_of(lonely), "a.tar: byte 10240: ends after an extended header, without its member");
}

}  // namespace
}  // namespace stoker::archive
