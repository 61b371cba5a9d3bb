// French output of `stoker explain`. A catalogue test compares the placeholders of both languages.
#include <gmock/gmock.h>

#include "base/file.h"
#include "base/language/translator.h"
#include "diagnose/cures.h"
#include "diagnose/exception_cures.h"
#include "diagnose/failure.h"
#include "diagnose/pending.h"
#include "diagnose/rule.h"
#include "slurm/queue/job_state.h"

namespace stoker::diagnose {
namespace {

using ::testing::HasSubstr;

const Translator kFrench(Language::french);

// A text with placeholders only is the same in all languages.
bool is_translated(std::string_view text) {
  std::string_view left = text;
  while (left.starts_with('{') && left.size() >= 3 && left[2] == '}') {
    left.remove_prefix(3);
    while (left.starts_with(':') || left.starts_with(' ')) left.remove_prefix(1);
  }
  return left.empty() || kFrench.translate(text).data() != text.data();
}

Diagnosis explain_text(const std::string& text) {
  const TempDirectory box;
  STOKER_CHECK(write_file(box / "log", text).ok());
  return explain_failure(
      {.logs = {{.file = box / "log", .name = "log"}}, .records = {}, .first_rank = {}, .also = {}});
}

TEST(French, every_rule_over_logs_is_translated) {
  for (const CureVariants& variants : cure_table()) {
    for (const std::string_view text : {variants.cure, variants.script, variants.job_file, variants.local})
      EXPECT_TRUE(is_translated(text)) << text;
  }
  for (const FailureRule* rule : failure_rules()) {
    EXPECT_TRUE(is_translated(rule->cause)) << rule->name << ": " << rule->cause;
    EXPECT_TRUE(is_translated(rule->cure)) << rule->name << ": " << rule->cure;
  }
}

TEST(French, every_cure_of_an_exception_is_translated) {
  for (const ExceptionCure& each : exception_cures()) EXPECT_TRUE(is_translated(each.cure)) << each.cure;
  for (const ExceptionCure& each : verdict_cures()) EXPECT_TRUE(is_translated(each.cure)) << each.cure;
}

TEST(French, every_reason_to_wait_is_translated) {
  for (const PendingRule& rule : pending_rules()) {
    EXPECT_TRUE(is_translated(rule.remedy)) << rule.reason;
    EXPECT_TRUE(is_translated(slurm::reason_text(rule.reason))) << rule.reason;
  }
}

TEST(French, the_cause_is_translated_and_the_log_quoted) {
  const std::string log = "[rank3]: ModuleNotFoundError: No module named 'einops'\n";
  const Diagnosis diagnosis = explain_text(log);
  EXPECT_EQ(kFrench.render(diagnosis.cause), "Python ne trouve pas de module einops sur ce nœud");
  EXPECT_THAT(kFrench.render(diagnosis.cure), HasSubstr("pip install einops"));
  ASSERT_FALSE(diagnosis.evidence.empty());
  EXPECT_EQ(kFrench.render(diagnosis.evidence[0].text), diagnosis.evidence[0].text.english());
}

TEST(French, empty_arguments_leave_no_blank_or_colon) {
  EXPECT_EQ(kFrench.render(explain_text("RuntimeError: CUDA error: out of memory\n").cause),
            "la mémoire du GPU est pleine");
}

}  // namespace
}  // namespace stoker::diagnose
