#include "base/secrets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker {
namespace {

using ::testing::ElementsAre;

const std::string kDigits = "0123456789abcdefABCDEF0123456789abcd";

TEST(Secrets, names_of_secrets_are_recognized_and_folders_and_tokenizers_are_not) {
  for (const std::string_view name :
       {"WANDB_API_KEY", "github_token", "MY_SECRET", "DB_PASSWORD", "AWS_SESSION", "GITHUB_PAT", "MYSQL_PWD",
        "DB_PASS", "SENTRY_DSN", "AUTHORIZATION", "SLACK_WEBHOOK"}) {
    EXPECT_TRUE(is_secret_name(name)) << name;
  }
  for (const std::string_view name :
       {"PWD", "OLDPWD", "PATH", "HOME", "TOKENIZERS_PARALLELISM", "GIT_AUTHOR_NAME", "PATTERN", "PASSES"}) {
    EXPECT_FALSE(is_secret_name(name)) << name;
  }
}

TEST(Secrets, tokens_are_hidden_by_their_format) {
  for (const std::string& token : std::vector<std::string>{
           "ghp_" + kDigits, "github_pat_11AAAAAAA0" + kDigits, "hf_" + kDigits, "sk-proj-" + kDigits,
           "sk-ant-api03-" + kDigits, "glpat-" + kDigits, "AKIAIOSFODNN7EXAMPLE",
           "xoxb-1234567890-" + kDigits, "npm_" + kDigits,
           "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"}) {
    EXPECT_EQ(hide_secrets("a " + token + " b"), "a (hidden) b") << token;
    EXPECT_TRUE(has_secret("x=" + token)) << token;
  }
}

TEST(Secrets, addresses_keep_their_host) {
  EXPECT_EQ(hide_secrets("git+https://ana:hush@example.org/x.git@main"),
            "git+https://(hidden)@example.org/x.git@main");
  EXPECT_EQ(hide_secrets("redis://:hush@n1:6379/0"), "redis://(hidden)@n1:6379/0");
  EXPECT_EQ(hide_secrets("https://hooks.slack.com/services/T0/B0/abcdef"),
            "https://hooks.slack.com/(hidden)");
  EXPECT_EQ(hide_secrets("https://ghp_" + kDigits + "@github.com/a/b"), "https://(hidden)@github.com/a/b");
}

TEST(Secrets, a_private_key_is_hidden_to_its_end) {
  const std::string key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY-----";
  EXPECT_EQ(hide_secrets("k=" + key + "\nrest"), "k=(hidden)\nrest");
  EXPECT_EQ(hide_secrets("-----BEGIN OPENSSH PRIVATE KEY-----\nabc"), "(hidden)");
  EXPECT_FALSE(has_secret("-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----"));
}

TEST(Secrets, plain_text_stays) {
  for (const std::string_view text :
       {"", "sk-learn-contrib-extensions", "hf_transfer", "task-0123456789abcdef0123",
        "my_hf_0123456789abcdef01", "ghp_short", "https://example.org/a:b@c", "ssh://git@example.org/x",
        "user@host:/path", "step=1e-4", "https://user:$PASSWORD@example.org"}) {
    EXPECT_EQ(hide_secrets(text), text);
  }
}

TEST(Secrets, a_command_line_keeps_its_shape) {
  EXPECT_THAT(
      hide_in_command({"stoker", "run", "job.yaml", "--set", "environment.variables.HF_TOKEN=x", "--set",
                       "train.epochs=3", "--set=params.api_key=y", "--set", "run=echo hf_" + kDigits}),
      ElementsAre("stoker", "run", "job.yaml", "--set", "environment.variables.HF_TOKEN=(hidden)", "--set",
                  "train.epochs=3", "--set=params.api_key=(hidden)", "--set", "run=echo (hidden)"));
  EXPECT_THAT(
      hide_in_command({"python", "t.py", "--api-key", "x", "--token=y", "--pad-token", "<pad>", "--lr", "1"}),
      ElementsAre("python", "t.py", "--api-key", "(hidden)", "--token=(hidden)", "--pad-token", "<pad>",
                  "--lr", "1"));
  EXPECT_THAT(
      hide_in_command({"/bin/sh", "-c", "WANDB_API_KEY=x  python t.py --password y\nexport A=b"}),
      ElementsAre("/bin/sh", "-c", "WANDB_API_KEY=(hidden)  python t.py --password (hidden)\nexport A=b"));
  EXPECT_THAT(hide_in_command({"sh", "-c", "HF_TOKEN=$TOKEN python t.py --token $TOKEN"}),
              ElementsAre("sh", "-c", "HF_TOKEN=$TOKEN python t.py --token $TOKEN"));
  EXPECT_THAT(hide_in_command({"stoker", "submit", "--sbatch=--export=HF_TOKEN=x", "a.sh"}),
              ElementsAre("stoker", "submit", "--sbatch=--export=HF_TOKEN=x", "a.sh"));
}

TEST(Secrets, only_added_lines_of_a_patch_change) {
  const std::string patch = "--- a/f\n+++ b/f\n@@ -1 +1,2 @@\n-old hf_" + kDigits + "\n";
  EXPECT_EQ(hide_in_patch(patch + "+new hf_" + kDigits + "\n+x"), patch + "+new (hidden)\n+x");
  EXPECT_EQ(hide_in_patch(""), "");
}

TEST(Secrets, files_with_secrets_are_known_by_name) {
  for (const std::string_view name : {".env", "app/.env", ".env.local", "prod.env", ".netrc", "keys/id_rsa",
                                      "server.pem", ".aws/credentials"}) {
    EXPECT_TRUE(is_secret_file(name)) << name;
  }
  for (const std::string_view name :
       {".env.example", "env.py", ".env/bin/python", "id_rsa.pub", "train.py"}) {
    EXPECT_FALSE(is_secret_file(name)) << name;
  }
}

}  // namespace
}  // namespace stoker
