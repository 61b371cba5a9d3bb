#include "transfer/protocol.h"

#include <gmock/gmock.h>

#include "base/process.h"
#include "transfer/location.h"

namespace stoker::transfer {
namespace {

using ::testing::HasSubstr;

std::string all_bytes() {
  std::string text;
  for (int byte = 1; byte < 256; ++byte) text += static_cast<char>(byte);
  return text;
}

TEST(EncodePath, any_name_comes_back_and_is_one_word) {
  for (const std::string& path :
       {std::string("a/b-1.tar"), std::string(" 'x' \"y\" $z `w`"), all_bytes(), std::string()}) {
    const std::string word = encode_path(path);
    EXPECT_EQ(word.find_first_of(" \n'\"$`*?"), std::string::npos);
    const auto back = decode_path(word);
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_EQ(*back, path);
  }
}

TEST(EncodePath, a_shell_decodes_the_same) {
  const std::string path = all_bytes();
  const auto done = run_program(
      {.argv = {"sh", "-c", "printf %b \"$1\"", "sh", encode_path(path)}, .environment = {}, .directory = {}},
      Deadline::after(std::chrono::seconds(30)));
  ASSERT_TRUE(done.ok()) << done.status().to_string();
  EXPECT_EQ(done->out, path);
}

TEST(DecodePath, refuses_any_other_word) {
  for (const char* word : {"a b", "\\", "\\0", "\\012", "\\0400", "\\0777", "\\x41", "$HOME", "\\0a00"})
    EXPECT_EQ(decode_path(word).status().message(), "transfer: invalid request") << word;
}

TEST(ParseFacts, reads_what_facts_text_writes) {
  const PathFacts facts{.path = "/data/with blank",
                        .state = PathState::dataset,
                        .is_writable = true,
                        .free_bytes = 12,
                        .free_files = 3,
                        .bytes_limited_by = "of your quota",
                        .files_limited_by = "on the disk",
                        .quota_error = "lfs: no answer in time"};
  std::vector<std::string> lines;
  const std::string text = facts_text(facts);
  for (std::string_view line : split(text, '\n')) lines.emplace_back(line);
  const auto back = parse_facts(lines);
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(facts_text(*back), facts_text(facts));
}

TEST(ParseFacts, reads_df_and_quota_of_a_shell) {
  const auto facts = parse_facts({"path /a", "state absent", "writable",
                                  "df //server/with blank 1000 900 100 90% /m/with blank",
                                  "inodes - 0 0 0 - /mnt", "quota Disk quotas for user ada (uid 7):",
                                  "quota      Filesystem  kbytes quota limit grace files quota limit grace",
                                  "quota      /mnt 100 150 160 - 7 10 12 -", "end"});
  ASSERT_TRUE(facts.ok()) << facts.status().to_string();
  EXPECT_EQ(facts->free_bytes, 50U * 1024);
  EXPECT_EQ(facts->bytes_limited_by, "of your quota");
  EXPECT_EQ(facts->free_files, 3U);
  EXPECT_TRUE(facts->is_writable);
}

TEST(ParseFacts, refuses_lines_without_a_path_or_with_an_unknown_state) {
  EXPECT_FALSE(parse_facts({"state absent", "end"}).ok());
  EXPECT_FALSE(parse_facts({"path /a", "end"}).ok());
  EXPECT_FALSE(parse_facts({"path a", "state absent"}).ok());
  EXPECT_FALSE(parse_facts({"path /a", "state gone"}).ok());
  EXPECT_FALSE(parse_facts({"path /a", "state absent", "free-bytes many"}).ok());
}

TEST(ParseLocation, is_a_host_if_a_colon_comes_before_a_slash) {
  const auto far = parse_location("ada@login:~/data/x/", "");
  ASSERT_TRUE(far.ok()) << far.status().to_string();
  EXPECT_EQ(far->host->host, "ada@login");
  EXPECT_EQ(far->path, "data/x");
  EXPECT_EQ(far->with_path("y"), "ada@login:y");
  for (const char* path : {"data", "./a:b", "/a:b", "data/a:b"}) {
    const auto near = parse_location(path, "");
    ASSERT_TRUE(near.ok()) << near.status().to_string();
    EXPECT_FALSE(near->host.has_value());
    EXPECT_EQ(near->path, path);
  }
  EXPECT_EQ(parse_location("ada@[::1]:/x", "")->host->host, "ada@::1");
}

TEST(ParseLocation, refuses_what_ssh_would_take_for_an_option) {
  EXPECT_THAT(parse_location("-oProxyCommand=x:y", "").status().message(), HasSubstr("invalid host"));
  EXPECT_THAT(parse_location("a b:y", "").status().message(), HasSubstr("invalid host"));
  EXPECT_THAT(parse_location("host:", "").status().message(), HasSubstr("no path of a dataset"));
  EXPECT_THAT(parse_location("host:~bob/x", "").status().message(), HasSubstr("only ~/ is expanded"));
}

}  // namespace
}  // namespace stoker::transfer
