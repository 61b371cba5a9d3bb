// French output of `stoker check SCRIPT`. A catalogue test compares the placeholders of both languages.
#include <gmock/gmock.h>

#include "base/file.h"
#include "base/language/translator.h"
#include "script_lint/lint.h"
#include "script_lint/rule.h"

namespace stoker::script_lint {
namespace {

using ::testing::HasSubstr;

const Translator kFrench(Language::french);

// In an empty folder.
std::vector<ScriptFinding> findings(std::string_view script) {
  const TempDirectory box;
  return lint_script("a.sh", std::string(script), {.directory = box.path()}).findings;
}

TEST(French, every_rule_over_scripts_is_translated) {
  for (const auto& table : rule_tables()) {
    for (const Rule& rule : table) {
      EXPECT_NE(kFrench.translate(rule.why).data(), rule.why.data()) << rule.name;
      for (const ScriptFinding& finding : findings(rule.bad))
        EXPECT_NE(kFrench.render(finding.text), finding.text.english()) << rule.name;
    }
  }
}

TEST(French, syntax_errors_are_translated) {
  const auto found = findings("#!/bin/bash\nif true; then\n  ./a\n");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(kFrench.render(found[0].text), "'if' sans son 'fi'\u00a0: le shell s'arrête ici");
}

TEST(French, site_limits_are_translated) {
  job::Site site{.name = "nord"};
  site.needs_account = true;
  const LintResult lint = lint_script("a.sh", "#!/bin/bash\n#SBATCH --time=1\n./a\n",
                                      {.directory = "/nonexistent", .site = &site});
  ASSERT_FALSE(lint.findings.empty());
  EXPECT_THAT(kFrench.render(lint.findings[0].text),
              HasSubstr("--account\u00a0: non défini, mais le site nord en exige un"));
}

}  // namespace
}  // namespace stoker::script_lint
