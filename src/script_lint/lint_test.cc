#include "script_lint/lint.h"

#include <set>

#include <gmock/gmock.h>

#include "base/file.h"
#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<const Rule*> all_rules() {
  std::vector<const Rule*> rules;
  for (std::span<const Rule> table : rule_tables()) {
    for (const Rule& rule : table) rules.push_back(&rule);
  }
  return rules;
}

// Findings in an empty folder, without a site.
LintResult lint(std::string_view text, const job::Site* site = nullptr) {
  const TempDirectory folder;
  return lint_script("a.sh", std::string(text), {.directory = folder.path(), .site = site});
}

std::vector<std::string> names(const LintResult& lint) {
  std::vector<std::string> found;
  for (const ScriptFinding& finding : lint.findings)
    found.push_back(format("{}:{}:{}", finding.line, to_text(finding.level), finding.rule));
  return found;
}

std::set<std::string> rules_of(const LintResult& lint) {
  std::set<std::string> found;
  for (const ScriptFinding& finding : lint.findings) found.insert(finding.rule);
  return found;
}

TEST(ScriptRules, each_matches_its_bad_example_only) {
  for (const Rule* rule : all_rules()) {
    if (rule->bad.empty()) continue;  // site rules have separate tests
    const std::string name(rule->name);
    EXPECT_TRUE(rules_of(lint(rule->bad)).contains(name)) << name;
    EXPECT_FALSE(rules_of(lint(rule->good)).contains(name)) << name;
  }
}

TEST(ScriptRules, fixed_findings_do_not_return) {
  for (const Rule* rule : all_rules()) {
    const LintResult before = lint(rule->bad);
    std::vector<ScriptFinding> own;
    for (const ScriptFinding& finding : before.findings) {
      if (finding.rule == rule->name && !finding.edits.empty()) own.push_back(finding);
    }
    if (own.empty()) continue;
    const std::string fixed = apply_edits(before.text, own);
    EXPECT_FALSE(rules_of(lint(fixed)).contains(std::string(rule->name))) << rule->name << "\n" << fixed;
  }
}

TEST(ScriptRules, names_are_unique_and_reasons_are_given) {
  std::set<std::string_view> seen;
  for (const RuleText& rule : rule_texts()) {
    EXPECT_TRUE(seen.insert(rule.name).second) << rule.name;
    EXPECT_FALSE(rule.why.empty() || rule.origin.empty()) << rule.name;
  }
}

TEST(ScriptLint, a_script_with_nothing_wrong_has_no_findings) {
  EXPECT_THAT(
      lint("#!/bin/bash\n#SBATCH --time=1:00:00\nset -euo pipefail\npython -u train.py \"$1\"\n").findings,
      IsEmpty());
}

TEST(ScriptLint, findings_come_by_line_with_their_text) {
  const LintResult found = lint(
      "#!/bin/bash\n"
      "#SBATCH --ntaks-per-node=4 --time=2h\n"
      "#SBATCH --output=logs/%j.out\n"
      "cd $SLURM_TMPDIR\n"
      "#SBATCH --mem=4G\n"
      "python -u train.py\n");
  EXPECT_THAT(names(found), ElementsAre("2:job:misspelt-option", "2:job:time-format", "3:job:log-folder",
                                        "5:job:late-directive", "6:job:results-left"));
  EXPECT_EQ(found.findings[0].text,
            "--ntaks-per-node: no such option, sbatch rejects the script; did you mean --ntasks-per-node?");
  EXPECT_EQ(found.findings[0].column, 9u);
  EXPECT_EQ(found.findings[0].fix, "#SBATCH --ntasks-per-node=4 --time=2h");
  EXPECT_EQ(
      found.findings[2].text,
      "log folder logs does not exist: before Slurm 23.02 the job ends at once without an error message");
  EXPECT_EQ(found.findings[2].fix, "mkdir -p logs");
  EXPECT_TRUE(found.loses_job());
}

TEST(ScriptLint, a_fix_keeps_options_before_commands) {
  const LintResult found = lint(
      "#!/bin/bash\n#SBATCH -n 1 --time=1\nmodule load a\n#SBATCH --mem=4G\npython -u train.py | tee log\n");
  EXPECT_EQ(apply_edits(found.text, found.findings),
            "#!/bin/bash\n#SBATCH -n 1 --time=1\n#SBATCH --mem=4G\nset -o pipefail\nmodule load a\npython -u "
            "train.py | tee log\n");
}

TEST(ScriptLint, commands_after_srun_and_in_quotes_are_checked) {
  const auto found = [](std::string_view command) {
    return rules_of(lint("#!/bin/bash\n#SBATCH -N 2 --time=1\n" + std::string(command) + "\nsrun ./a\n"));
  };
  EXPECT_TRUE(found("tar xf a.tar -C $SLURM_TMPDIR").contains("first-node-only"));
  EXPECT_TRUE(
      found("mkdir -p $SLURM_TMPDIR/d; cd $SLURM_TMPDIR/d && tar xf ~/a.tar").contains("first-node-only"));
  EXPECT_TRUE(found("D=$SLURM_TMPDIR/d\ntar -xzf a.tar -C \"$D\"").contains("first-node-only"));
  EXPECT_TRUE(found("virtualenv $SLURM_TMPDIR/e\nsource $SLURM_TMPDIR/e/bin/activate\npip install a")
                  .contains("first-node-only"));
  EXPECT_FALSE(
      found("srun -N 2 --ntasks-per-node=1 tar xf a.tar -C $SLURM_TMPDIR").contains("first-node-only"));
  EXPECT_FALSE(found("srun bash -c 'tar xf a.tar -C $SLURM_TMPDIR'").contains("first-node-only"));
  EXPECT_FALSE(found("srun bash <<EOF\ntar xf a.tar -C $SLURM_TMPDIR\nEOF").contains("first-node-only"));
  EXPECT_FALSE(found("tar xf a.tar -C $SCRATCH").contains("first-node-only"));
  EXPECT_FALSE(found("tar cf $SLURM_TMPDIR/a.tar data").contains("first-node-only"));
}

TEST(ScriptLint, names_in_angle_brackets_are_placeholders) {
  const auto found = [](std::string_view line) {
    return rules_of(lint("#!/bin/bash\n" + std::string(line) + "\n")).contains("placeholder");
  };
  EXPECT_TRUE(found("P=/proj/<mydir-name>/data"));
  EXPECT_TRUE(found("if true; then ./a --data /x/<user>/y; fi"));
  EXPECT_TRUE(found("export TOKEN=\"<Your token>\""));
  EXPECT_FALSE(found("MARK='<s>'"));
  EXPECT_FALSE(found("./a <in >out"));
  EXPECT_FALSE(found("./a < in>out"));
  EXPECT_FALSE(found("sort <(./a) >b"));
  EXPECT_FALSE(found("echo '<name>' \"<name>\""));
}

TEST(ScriptLint, placeholders_of_templates_are_reported) {
  EXPECT_THAT(names(lint("#!/bin/bash\n#SBATCH --account={account}\n#SBATCH --time=1:00\n#SBATCH -J {name}\n"
                         "./run --weights ./path_to_weights.ckpt\n")),
              ElementsAre("2:job:placeholder", "4:advice:placeholder", "5:job:placeholder"));
  // Names of options, variables and programs.
  EXPECT_THAT(
      names(lint("#!/bin/bash\n#SBATCH --time=1:00\npath_to_data=/d\n./path_to_graph.sh --path_to_data "
                 "\"$path_to_data\" {1..3}\n")),
      IsEmpty());
}

TEST(ScriptLint, a_gpu_type_without_a_count_means_one) {
  const std::string rest = "\n#SBATCH --time=1:00\n./run\n";
  EXPECT_THAT(names(lint("#!/bin/bash\n#SBATCH --gpus-per-node=a100" + rest)), IsEmpty());
  EXPECT_THAT(names(lint("#!/bin/bash\n#SBATCH --gpus-per-node=a100:two" + rest)),
              ElementsAre("2:job:option-value"));
}

TEST(ScriptLint, zero_gpus_are_allowed_for_cpu_scripts) {
  const std::string head = "#!/bin/bash\n#SBATCH --gres=gpu:0\n#SBATCH --time=1:00\n";
  EXPECT_THAT(rules_of(lint(head + "nvidia-smi\n")), ::testing::Contains("zero-gpus"));
  EXPECT_THAT(rules_of(lint(head + "export CUDA_VISIBLE_DEVICES=\"\"\n./run\n")), IsEmpty());
}

TEST(ScriptLint, an_array_that_sbatch_cannot_read_is_reported) {
  const std::string rest = "\n#SBATCH --time=1:00\n./run $SLURM_ARRAY_TASK_ID\n";
  EXPECT_THAT(names(lint("#!/bin/bash\n#SBATCH --array=0-##count##" + rest)),
              ElementsAre("2:job:option-value"));
  for (const char* right : {"0", "1-4%2", "1,5,7-20:2%4"})
    EXPECT_THAT(rules_of(lint(std::string("#!/bin/bash\n#SBATCH --array=") + right + rest)),
                ::testing::Not(::testing::Contains("option-value")))
        << right;
}

TEST(ScriptLint, a_directive_without_its_hash_is_reported) {
  const LintResult found = lint("#!/bin/bash\n#SBATCH --time=1:00\nSBATCH --gres=gpu:1\n./run\n");
  EXPECT_THAT(names(found), ElementsAre("3:job:not-a-directive"));
  EXPECT_THAT(apply_edits(found.text, found.findings), HasSubstr("\n#SBATCH --gres=gpu:1\n"));
}

TEST(ScriptLint, a_last_command_piped_into_tee_hides_its_failure) {
  const std::string head = "#!/bin/bash\n#SBATCH --time=1:00\n";
  EXPECT_THAT(names(lint(head + "pixi run bash all.sh 2>&1 | tee all.log\n")),
              ElementsAre("3:job:hidden-failure"));
  EXPECT_THAT(rules_of(lint(head + "pixi run bash all.sh 2>&1 | tee all.log\nmv all.log logs\n")),
              ::testing::Not(::testing::Contains("hidden-failure")));
  EXPECT_THAT(rules_of(lint(head + "nvidia-smi | tee gpus.txt\n")),
              ::testing::Not(::testing::Contains("hidden-failure")));
}

TEST(ScriptLint, a_typographic_dash_in_a_command_is_reported) {
  const LintResult found =
      lint("#!/bin/bash\n#SBATCH --time=1:00\nsingularity run \u2013nv a.sif\necho \u2013 a\n");
  EXPECT_THAT(names(found), ElementsAre("3:job:long-dash"));
  EXPECT_THAT(apply_edits(found.text, found.findings), HasSubstr("run --nv a.sif"));
}

TEST(ScriptLint, an_agent_that_queries_slurm_must_run_on_each_node) {
  const std::string head = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --time=1:00\n";
  EXPECT_THAT(rules_of(lint(head + "oumi distributed torchrun -m oumi train\n")),
              ::testing::Contains("agent-on-first-node"));
  EXPECT_THAT(rules_of(lint(head + "srun --ntasks-per-node=1 oumi distributed torchrun -m oumi train\n")),
              ::testing::Not(::testing::Contains("agent-on-first-node")));
}

TEST(ScriptLint, scripts_in_other_languages_are_read_up_to_the_first_code_line) {
  const LintResult found =
      lint("#!/usr/bin/env python3\n#SBATCH --time-min=1 --time=2\nimport os\nif x: print('a\n");
  EXPECT_THAT(names(found), IsEmpty());
  EXPECT_THAT(names(lint("#!/usr/bin/env python3\n#SBATCH --tine=1\nx = 1\n")),
              ElementsAre("2:job:misspelt-option"));
}

TEST(ScriptLint, dos_line_ends_are_reported_once_and_ignored) {
  const LintResult found = lint("#!/bin/bash\r\n#SBATCH --tine=1\r\necho a\r\n");
  EXPECT_THAT(names(found), ElementsAre("1:job:dos-line-ends", "2:job:misspelt-option"));
  EXPECT_EQ(apply_edits(found.text, found.findings), "#!/bin/bash\n#SBATCH --time=1\necho a\n");
}

TEST(ScriptLint, the_default_time_of_the_default_partition_is_reported_once) {
  job::Site site;
  site.name = "here";
  site.partitions["gpu"] = {.time = {},
                            .default_time = std::chrono::minutes(10),
                            .nodes = {},
                            .default_qos = {},
                            .default_for = job::DefaultFor::gpu,
                            .what = {},
                            .from = ""};
  constexpr std::string_view kScript = "#!/bin/bash\n#SBATCH --gres=gpu:1\nsrun ./train\n";
  EXPECT_THAT(names(lint(kScript, &site)),
              AllOf(Contains("2:time:site-limit"), Not(Contains("2:advice:no-time"))));
  site.partitions["gpu"].default_for.reset();
  EXPECT_THAT(names(lint(kScript, &site)),
              AllOf(Contains("2:advice:no-time"), Not(Contains("2:time:site-limit"))));
}

TEST(ScriptLint, the_limits_and_opinions_of_the_site_apply) {
  job::Site site;
  site.name = "narval";
  site.sources["page"] = {"https://docs.example.org/narval", "2026-04-18"};
  site.limits = {.time = std::chrono::hours(168),
                 .shortest = std::chrono::hours(1),
                 .jobs = 1000,
                 .nodes = {},
                 .array = {}};
  site.needs_account = true;
  site.account = "def-<your PI>";
  site.has_internet = false;
  site.from = {{"limits", "page"}, {"account", "page"}};
  job::SiteNode node;
  node.gpus = 4;
  node.cores = 48;
  node.memory = ByteCount{510000ull << 20};
  node.from = "page";
  site.nodes["gpu"] = node;
  site.opinions["anaconda"] = {"Anaconda is not supported here", "module load python", "page"};
  const LintResult found = lint(
      "#!/bin/bash\n"
      "#SBATCH --time=8-00 --gres=gpu:8\n"
      "#SBATCH --cpus-per-task=64 --mem=600G\n"
      "#SBATCH --array=1-2000%9\n"
      "pip install a\n"
      "wget https://example.org/a\n"
      "source ~/anaconda3/bin/activate\n",
      &site);
  EXPECT_THAT(names(found), ElementsAre("2:job:site-limit", "2:job:site-limit", "2:job:site-limit",
                                        "3:job:site-limit", "3:job:site-limit", "4:job:site-limit",
                                        "5:time:no-network", "6:job:no-network", "7:advice:site-opinion"));
  EXPECT_EQ(
      found.findings[1].text,
      "--time: 8d is over the limit of every job (7d, site narval); see https://docs.example.org/narval "
      "(2026-04-18)");
  EXPECT_EQ(found.findings[1].fix, "#SBATCH --time=7-00:00:00");
  EXPECT_EQ(found.findings[2].text,
            "--gres: 8 on each node, but no node has more than 4 (site narval); see "
            "https://docs.example.org/narval (2026-04-18)");
  EXPECT_THAT(found.findings[6].fix.english(), HasSubstr("pip install --no-index a"));
}

TEST(ScriptLint, sbatch_environment_variables_are_checked_against_the_site) {
  job::Site site;
  site.name = "narval";
  site.limits.time = std::chrono::hours(24);
  site.needs_account = true;
  const auto found = [&](const slurm::Lookup& environment) {
    return lint_script("a.sh", "#!/bin/bash\n#SBATCH --time=1:00:00\n./a\n",
                       {.directory = {}, .site = &site, .environment = environment})
        .findings;
  };
  const auto unset = found({});
  ASSERT_EQ(unset.size(), 1u);
  EXPECT_EQ(unset[0].text, "--account: not set, but site narval requires one");
  const auto set = found([](std::string_view name) {
    return name == "SBATCH_ACCOUNT"     ? std::optional("def-x")
           : name == "SBATCH_TIMELIMIT" ? std::optional("2-00")
                                        : std::nullopt;
  });
  ASSERT_EQ(set.size(), 1u);
  EXPECT_EQ(set[0].text,
            "--time: 2d is over the limit of every job (1d, site narval) (SBATCH_TIMELIMIT in your shell)");
}

TEST(ScriptLint, a_time_far_above_the_longest_run_is_reported_with_a_safe_one) {
  const auto found = [](std::string_view time, std::chrono::minutes took) {
    return lint_script("a.sh", "#!/bin/bash\n#SBATCH --time=" + std::string(time) + "\n./a\n",
                       {.directory = {}, .longest_run = took, .run_count = 3})
        .findings;
  };
  using std::chrono::minutes;
  const auto far = found("20:00:00", minutes(42));
  ASSERT_EQ(far.size(), 1u);
  EXPECT_EQ(far[0].text,
            "20h requested, and 3 runs of this script took at most 42 min 00 s: 1h15m is safe and starts "
            "earlier in a gap");
  EXPECT_EQ(far[0].fix,
            "#SBATCH --time=01:15:00    (predict the start: stoker submit --check --sbatch=--time=01:15:00 "
            "a.sh)");
  EXPECT_THAT(found("2:00:00", minutes(42)), IsEmpty());
  EXPECT_THAT(found("1:00:00", minutes(1)), IsEmpty());
}

TEST(ScriptLint, a_better_tool_is_reported) {
  const auto found = [](std::string_view text) {
    for (const ScriptFinding& finding :
         lint("#!/bin/bash\n#SBATCH --time=2\n" + std::string(text)).findings) {
      if (finding.rule == "better-tool") return finding.fix.english();
    }
    return std::string();
  };
  EXPECT_EQ(found("#SBATCH --array=1-10%1\npython -u a.py --checkpoint c\n"),
            "`stoker init --from SCRIPT`, then in the job file `chain: {until: done, time_per_link: 20h}`");
  EXPECT_EQ(found("#SBATCH --array=1-10%1\npython -u a.py\n"), "");
  EXPECT_EQ(found("for i in 1 2 3; do\n  sbatch --dependency=afterok:$j a.sh\ndone\n"),
            "in a job file: `chain: {until: done, time_per_link: 20h}`, or `after: [FIRST.yaml]`");
  EXPECT_EQ(found("for i in {1..8}; do\n  python -u a.py $i &\ndone\nwait\n"), "#SBATCH --array=1-8");
  EXPECT_EQ(found("for i in 1 2 3; do\n  for j in a b; do\n    python -u a.py $i $j\n  done\ndone\n"),
            "`stoker submit` with `array: {over: configs.csv}`, one row per run");
  EXPECT_EQ(found("for i in 1 2; do\n  python -u a.py $i\ndone\n"), "");
}

TEST(ScriptLint, files_that_are_not_scripts_are_rejected) {
  const TempDirectory folder;
  const auto problem = [&](std::string_view name) { return load_script(folder / name).status().to_string(); };
  const std::string path = folder.path().string();
  EXPECT_EQ(problem("none"), path + "/none: no such file or directory");
  EXPECT_EQ(problem(""), path + "/: is a folder, expected a file");
  ASSERT_TRUE(write_file(folder / "zero", std::string_view("#!/bin/sh\n\0", 11)).ok());
  EXPECT_EQ(problem("zero"), path + "/zero: a zero byte at byte 10, and Slurm rejects such a script");
  ASSERT_TRUE(write_file(folder / "empty", "").ok());
  EXPECT_EQ(problem("empty"), path + "/empty: is empty");
  auto large = File::create(folder / "large");
  ASSERT_TRUE(large.ok() && large->truncate(100'000'000).ok());
  EXPECT_EQ(problem("large"), path + "/large: 100000000 bytes, Slurm accepts scripts of at most 4194304");
}

TEST(ScriptLint, long_lines_are_shown_in_part) {
  const LintResult found = lint("#!/bin/bash\n./a --seed $RANDOM " + std::string(3'000'000, 'y') + "\n");
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_LT(found.findings[0].excerpt.size(), 500u);
  const LintResult crosses = lint("#!/bin/bash\n./a " + std::string(100'000, 'x') + "\n");
  ASSERT_EQ(crosses.findings.size(), 1u);
  EXPECT_LT(crosses.findings[0].text.english().size(), 500u);
}

TEST(ScriptLint, changed_lines_are_whole_lines) {
  const std::string text = "a\nbcd\ne\n";
  const ChangedLines replaced = changed_lines(text, {{3, 4, "X"}});
  EXPECT_EQ(replaced.before, "bcd\n");
  EXPECT_EQ(replaced.after, "bXd\n");
  EXPECT_EQ(replaced.first, 2u);
  const ChangedLines inserted = changed_lines(text, {{2, 2, "new\n"}});
  EXPECT_EQ(inserted.before, "");
  EXPECT_EQ(inserted.after, "new\n");
}

}  // namespace
}  // namespace stoker::script_lint
