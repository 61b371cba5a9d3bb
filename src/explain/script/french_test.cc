// What `stoker check SCRIPT` says in French. That nothing is filled in otherwise than in English is a test of
// the catalogue.
#include <gmock/gmock.h>

#include "base/file.h"
#include "base/language/words.h"
#include "explain/script/lint.h"
#include "explain/script/rule.h"

namespace stoker::explain {
namespace {

using ::testing::HasSubstr;

const Words kFrench(Language::french);

// In an empty folder.
std::vector<ScriptFinding> findings(std::string_view script, const Words& words) {
  const TempDirectory box;
  return lint_script("a.sh", std::string(script), {.directory = box.path(), .words = words}).findings;
}

TEST(French, every_rule_over_scripts_is_said) {
  for (const auto& table : rule_tables()) {
    for (const Rule& rule : table) {
      EXPECT_NE(kFrench.of(rule.why).data(), rule.why.data()) << rule.name;
      const auto english = findings(rule.bad, Words());
      const auto french = findings(rule.bad, kFrench);
      ASSERT_EQ(english.size(), french.size()) << rule.name;
      for (std::size_t i = 0; i < english.size(); ++i) {
        EXPECT_NE(english[i].text, french[i].text) << rule.name;
        EXPECT_EQ(english[i].edits, french[i].edits) << rule.name;
        EXPECT_EQ(english[i].excerpt, french[i].excerpt) << rule.name;
      }
    }
  }
}

TEST(French, what_the_shell_cannot_read_is_said) {
  const auto found = findings("#!/bin/bash\nif true; then\n  ./a\n", kFrench);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].text, "'if' sans son 'fi'\u00a0: le shell s'arrête ici");
}

TEST(French, what_the_site_does_not_allow_is_said) {
  job::Site site{.name = "nord"};
  site.needs_account = true;
  const Lint lint = lint_script("a.sh", "#!/bin/bash\n#SBATCH --time=1\n./a\n",
                                {.directory = "/nonexistent", .site = &site, .words = kFrench});
  ASSERT_FALSE(lint.findings.empty());
  EXPECT_THAT(lint.findings[0].text, HasSubstr("--account\u00a0: non défini, et le site nord en veut un"));
}

}  // namespace
}  // namespace stoker::explain
