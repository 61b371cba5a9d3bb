// What `stoker explain` says in French. That nothing is filled in otherwise than in English is a test of the
// catalogue.
#include <gmock/gmock.h>

#include "base/file.h"
#include "base/language/words.h"
#include "explain/failure/failure.h"
#include "explain/failure/rule.h"
#include "explain/failure/waiting.h"
#include "slurm/queue/job_state.h"

namespace stoker::explain {
namespace {

using ::testing::HasSubstr;

const Words kFrench(Language::french);

// A text of nothing but what is filled in is the same in all languages.
bool is_said(std::string_view text) {
  std::string_view left = text;
  while (left.starts_with('{') && left.size() >= 3 && left[2] == '}') {
    left.remove_prefix(3);
    while (left.starts_with(':') || left.starts_with(' ')) left.remove_prefix(1);
  }
  return left.empty() || kFrench.of(text).data() != text.data();
}

Diagnosis explain(const std::string& text, const Words& words) {
  const TempDirectory box;
  CHECK(write_file(box / "log", text).ok());
  return explain_failure(
      {.logs = {{.file = box / "log", .name = "log"}}, .words = {}, .first_rank = {}, .also = {}}, words);
}

TEST(French, every_rule_over_logs_is_said) {
  for (const FailureRule* rule : failure_rules()) {
    EXPECT_TRUE(is_said(rule->cause)) << rule->name << ": " << rule->cause;
    EXPECT_TRUE(is_said(rule->cure)) << rule->name << ": " << rule->cure;
  }
}

TEST(French, every_reason_to_wait_is_said) {
  for (const WaitingRule& rule : waiting_rules()) {
    EXPECT_TRUE(is_said(rule.sooner)) << rule.reason;
    EXPECT_TRUE(is_said(slurm::reason_words(rule.reason))) << rule.reason;
  }
}

TEST(French, the_cause_is_said_and_the_log_quoted) {
  const std::string log = "[rank3]: ModuleNotFoundError: No module named 'einops'\n";
  const Diagnosis diagnosis = explain(log, kFrench);
  const Diagnosis english = explain(log, Words());
  EXPECT_EQ(diagnosis.cause, "Python ne trouve pas de module einops sur ce nœud");
  EXPECT_THAT(diagnosis.cure, HasSubstr("pip install einops"));
  EXPECT_EQ(diagnosis.rule, english.rule);
  EXPECT_EQ(diagnosis.confirm, english.confirm);
  ASSERT_FALSE(diagnosis.evidence.empty());
  EXPECT_EQ(diagnosis.evidence[0].text, english.evidence[0].text);
}

TEST(French, what_stays_empty_leaves_no_blank_or_colon_behind) {
  EXPECT_EQ(explain("RuntimeError: CUDA error: out of memory\n", kFrench).cause,
            "la mémoire du GPU était pleine\u00a0: il fallait encore");
}

}  // namespace
}  // namespace stoker::explain
