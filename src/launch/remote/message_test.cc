#include "launch/remote/message.h"

#include <gmock/gmock.h>

namespace stoker::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::MatchesRegex;

RemoteRequest request() {
  return {.kind = RemoteRequest::Kind::fetch,
          .words = {"submit", "--set", "params.a=$(rm) '\"\n\xff"},
          .folder = "/users/ada/my exp",
          .runs = "runs",
          .has_checkpoints = true,
          .sent_below = "exp",
          .files = {"exp/a b", "exp/-rf"},
          .bytes = 10240,
          .host_options = "--host 'login:my exp'"};
}

TEST(RemoteRequest, round_trips_with_arbitrary_bytes) {
  const std::string line = to_line(request());
  EXPECT_THAT(line, EndsWith("\n"));
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto back = parse_request(line);
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(back->kind, RemoteRequest::Kind::fetch);
  EXPECT_EQ(back->words, request().words);
  EXPECT_EQ(back->folder, request().folder);
  EXPECT_EQ(back->runs, request().runs);
  EXPECT_TRUE(back->has_checkpoints);
  EXPECT_EQ(back->sent_below, "exp");
  EXPECT_EQ(back->files, request().files);
  EXPECT_EQ(back->bytes, 10240U);
  EXPECT_EQ(back->host_options, request().host_options);
}

TEST(RemoteRequest, anything_else_is_refused) {
  const std::string line = to_line(request());
  std::vector<std::string> wrong = {"", "{}", "[]", "hello", line.substr(0, line.size() / 2)};
  const auto with = [&](auto change) {
    RemoteRequest bad = request();
    change(bad);
    wrong.push_back(to_line(bad));
  };
  with([](RemoteRequest& bad) { bad.words.clear(); });
  with([](RemoteRequest& bad) { bad.words.push_back(std::string("a\0b", 3)); });
  with([](RemoteRequest& bad) { bad.folder.clear(); });
  with([](RemoteRequest& bad) { bad.files = {"../out"}; });
  with([](RemoteRequest& bad) { bad.files = {"/etc/passwd"}; });
  with([](RemoteRequest& bad) { bad.files = {"a//b"}; });
  with([](RemoteRequest& bad) { bad.files = {""}; });
  with([](RemoteRequest& bad) { bad.sent_below = "../.."; });
  for (const std::string& each : wrong) {
    const auto read = parse_request(each);
    ASSERT_FALSE(read.ok()) << each;
    EXPECT_EQ(read.status().message(), "remote: invalid request") << each;
  }
}

TEST(RemoteGreeting, is_known_by_its_nonce) {
  const std::string line = greeting("abc", "1.2.3");
  EXPECT_EQ(line, "stoker-remote abc 1.2.3");
  EXPECT_EQ(parse_greeting(line, "abc"), "1.2.3");
  EXPECT_EQ(parse_greeting(line + "\r", "abc"), "1.2.3");
  EXPECT_EQ(parse_greeting(line, "abd"), std::nullopt);
  EXPECT_EQ(parse_greeting("Welcome to the cluster", "abc"), std::nullopt);
  EXPECT_EQ(parse_greeting("", "abc"), std::nullopt);
}

TEST(RemoteHost, default_folder_is_derived_from_the_local_one) {
  const auto named = parse_host("ada@login.cluster:exp/one", "", "/users/ada/x");
  ASSERT_TRUE(named.ok());
  EXPECT_EQ(named->host, "ada@login.cluster");
  EXPECT_EQ(named->folder, "exp/one");
  EXPECT_EQ(named->program, "stoker");
  EXPECT_EQ(parse_host("login:~/exp", "", "/x")->folder, "exp");
  EXPECT_EQ(parse_host("login:/scratch/a:b", "", "/x")->folder, "/scratch/a:b");
  const auto stands = parse_host("login", "", "/users/ada/my exp$");
  EXPECT_THAT(stands->folder, MatchesRegex("stoker/my_exp_-[0-9a-f]{8}"));
  EXPECT_EQ(parse_host("login:", "", "/users/ada/my exp$")->folder, stands->folder);
  EXPECT_NE(parse_host("login", "", "/users/bob/my exp$")->folder, stands->folder);
  EXPECT_THAT(parse_host("login", "", "/")->folder, MatchesRegex("stoker/folder-[0-9a-f]{8}"));
}

TEST(RemoteHost, host_that_looks_like_an_option_is_invalid) {
  for (const char* text : {"", ":exp", "-oProxyCommand=x", "a b", "a\nb"}) {
    const auto host = parse_host(text, "", "/x");
    ASSERT_FALSE(host.ok()) << text;
    EXPECT_EQ(
        host.status().message(),
        format("--host {}: invalid host (examples: login.cluster, ada@login.cluster:exp)", printable(text)));
  }
}

TEST(RemoteHost, remote_command_is_shell_safe) {
  const RemoteHost plain{.host = "login", .folder = "a'b", .program = "stoker"};
  EXPECT_THAT(ssh_arguments(plain, "abc"),
              ElementsAre("ssh", "-T", "-o", "ServerAliveInterval=30", "--", "login", "stoker remote abc"));
  EXPECT_EQ(ssh_arguments({"login", "x", "/opt/my $(x)/stoker"}, "n").back(),
            "'/opt/my $(x)/stoker' remote n");
  EXPECT_EQ(ssh_arguments({"login", "x", "~/my bin/stoker"}, "n").back(), "~/'my bin/stoker' remote n");
}

}  // namespace
}  // namespace stoker::launch
