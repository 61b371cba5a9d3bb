#include "diagnose/log_text.h"

#include <fcntl.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>

#include "base/file.h"
#include "base/process.h"
#include "diagnose/failure.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kFull = "OSError: [Errno 28] No space left on device: '/a'\n";

struct Read {
  std::string text;
  std::vector<std::string> notes;
  std::size_t largest = 0;
};

Read read(const Path& file) {
  Read all;
  const auto reading = read_log(file, [&](std::string_view block) {
    all.largest = std::max(all.largest, block.size());
    all.text += block;
  });
  STOKER_CHECK(reading.ok());
  for (const Message& note : reading->notes) all.notes.push_back(note.english());
  return all;
}

// Through a pipe, in small pieces.
Read read_piped(const Path& file) {
  int ends[2];
  STOKER_CHECK(::pipe(ends) == 0);
  const std::string content = *read_file(file);
  std::thread writer([&] {
    std::size_t at = 0;
    while (at < content.size()) {
      const ssize_t count =
          ::write(ends[1], content.data() + at, std::min<std::size_t>(1000, content.size() - at));
      STOKER_CHECK(count > 0);
      at += static_cast<std::size_t>(count);
    }
    ::close(ends[1]);
  });
  Read all;
  const auto reading = read_log(ends[0], "stdin", [&](std::string_view block) { all.text += block; });
  writer.join();
  ::close(ends[0]);
  STOKER_CHECK(reading.ok());
  for (const Message& note : reading->notes) all.notes.push_back(note.english());
  return all;
}

Diagnosis explain(const Path& file) {
  return explain_failure({.logs = {{file, "log", -1}}, .records = {}, .first_rank = {}});
}

void shell(const std::string& command) { STOKER_CHECK(::system(command.c_str()) == 0); }

TEST(LogText, compressed_logs_are_read_like_plain_ones) {
  TempDirectory box;
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += format("step {} of a training\n", i);
  ASSERT_TRUE(write_file(box / "log", text + std::string(kFull)).ok());
  shell(format("cd {} && gzip -k log && head -c 100 log | gzip > two.gz && tail -c +101 log | gzip >> two.gz",
               box.path()));
  EXPECT_EQ(read(box / "log.gz").text, text + std::string(kFull));
  EXPECT_EQ(read(box / "two.gz").text, text + std::string(kFull));
  const Diagnosis diagnosis = explain(box / "log.gz");
  EXPECT_EQ(diagnosis.rule, "disk-full");
  EXPECT_EQ(diagnosis.evidence.at(0).where, "log:300001");
  EXPECT_EQ(explain(box / "log").evidence.at(0).where, "log:300001");
}

TEST(LogText, piped_text_is_read_like_a_file) {
  TempDirectory box;
  std::string text;
  // Compressed and plain, longer than one read, and exactly one read.
  for (int i = 0; text.size() < 3'000'000; ++i) text += format("{:016x}\n", i * 0x9E3779B97F4A7C15ULL);
  ASSERT_TRUE(write_file(box / "log", text).ok());
  ASSERT_TRUE(write_file(box / "piece", text.substr(0, (1u << 20) + 4)).ok());
  ASSERT_TRUE(write_file(box / "empty", "").ok());
  shell(format("cd {} && gzip -k log && zstd -q log && head -c 100000 log.gz > cut.gz", box.path()));
  for (const char* name : {"log", "log.gz", "log.zst", "piece", "empty"}) {
    const Read piped = read_piped(box / name);
    EXPECT_EQ(piped.text, read(box / name).text) << name;
    EXPECT_THAT(piped.notes, IsEmpty()) << name;
  }
  const Read cut = read_piped(box / "cut.gz");
  EXPECT_EQ(cut.text, read(box / "cut.gz").text);
  EXPECT_THAT(cut.notes, ElementsAre("ends inside gzip data: read up to this point"));
}

TEST(LogText, a_truncated_compressed_log_is_read_up_to_its_end) {
  TempDirectory box;
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += format("step {} of a training\n", i * 7919 % 100'003);
  ASSERT_TRUE(write_file(box / "log", text).ok());
  shell(format("cd {} && gzip -k log && head -c 200000 log.gz > cut.gz", box.path()));
  const Read cut = read(box / "cut.gz");
  EXPECT_GT(cut.text.size(), 100'000u);
  EXPECT_TRUE(text.starts_with(cut.text));
  EXPECT_THAT(cut.notes, ElementsAre("ends inside gzip data: read up to this point"));
}

TEST(LogText, holes_of_sparse_files_are_skipped) {
  TempDirectory box;
  ASSERT_TRUE(write_file(box / "log", "begin\n").ok());
  ASSERT_EQ(::truncate((box / "log").c_str(), 10'000'000'000), 0);
  {
    auto file = File::open_append(box / "log");
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("\n" + std::string(kFull)).ok());
  }
  const Diagnosis diagnosis = explain(box / "log");
  EXPECT_EQ(diagnosis.rule, "disk-full");
  EXPECT_LT(diagnosis.bytes, 100'000'000u);
  ASSERT_EQ(diagnosis.notes.size(), 1u);
  EXPECT_THAT(diagnosis.notes[0].english(), HasSubstr("has holes (10.0 GB), skipped"));
}

TEST(LogText, very_long_lines_are_split) {
  TempDirectory box;
  std::string text(20'000'000, 'x');
  text += std::string(kFull);
  ASSERT_TRUE(write_file(box / "log", text).ok());
  EXPECT_LE(read(box / "log").largest, 3u << 20);
  EXPECT_EQ(explain(box / "log").rule, "disk-full");
}

TEST(LogText, utf_16_is_read) {
  TempDirectory box;
  std::string wide = "\xFF\xFE";
  for (const char c : kFull) wide += std::string{c, '\0'};
  ASSERT_TRUE(write_file(box / "log", wide).ok());
  EXPECT_EQ(explain(box / "log").rule, "disk-full");
  std::string big = "\xFE\xFF";
  for (const char c : kFull) big += std::string{'\0', c};
  ASSERT_TRUE(write_file(box / "log", big).ok());
  EXPECT_EQ(explain(box / "log").rule, "disk-full");
}

TEST(LogText, binary_files_are_reported) {
  TempDirectory box;
  std::string noise;
  for (int i = 0; i < 100'000; ++i) noise += static_cast<char>(i * 7919 >> 3);
  ASSERT_TRUE(write_file(box / "log", noise).ok());
  const Diagnosis diagnosis = explain(box / "log");
  EXPECT_EQ(diagnosis.certainty, Certainty::unknown);
  ASSERT_EQ(diagnosis.notes.size(), 1u);
  EXPECT_EQ(diagnosis.notes[0], "log: is binary, not a log");
  for (const Evidence& evidence : diagnosis.evidence)
    EXPECT_EQ(evidence.text, printable(evidence.text.english()));
}

TEST(LogText, a_line_across_two_chunks_is_whole) {
  TempDirectory box;
  std::string text((1 << 20) - 20, 'x');
  text += '\n';
  text += kFull;
  ASSERT_TRUE(write_file(box / "log", text).ok());
  EXPECT_EQ(explain(box / "log").evidence.at(0).where, "log:2");
}

TEST(LogText, only_regular_files_are_read) {
  TempDirectory box;
  EXPECT_EQ(read_log(box.path(), [](std::string_view) {}).error().code(), Code::invalid);
  EXPECT_EQ(read_log(box / "none", [](std::string_view) {}).error().code(), Code::not_found);
  ASSERT_TRUE(write_file(box / "empty", "").ok());
  EXPECT_THAT(read(box / "empty").text, IsEmpty());
}

}  // namespace
}  // namespace stoker::diagnose
