#include "explain/script/lint.h"

#include <set>

#include <gmock/gmock.h>

#include "base/file.h"
#include "base/text.h"
#include "explain/script/rule.h"

namespace stoker::explain {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<const Rule*> all_rules() {
  std::vector<const Rule*> rules;
  for (std::span<const Rule> table : rule_tables()) {
    for (const Rule& rule : table) rules.push_back(&rule);
  }
  return rules;
}

// Findings in an empty folder, where no site is known.
Lint lint(std::string_view text, const job::Site* site = nullptr) {
  const TempDirectory folder;
  return lint_script("a.sh", std::string(text), {.directory = folder.path(), .site = site});
}

std::vector<std::string> names(const Lint& lint) {
  std::vector<std::string> found;
  for (const ScriptFinding& finding : lint.findings)
    found.push_back(format("{}:{}:{}", finding.line, to_text(finding.level), finding.rule));
  return found;
}

std::set<std::string> rules_of(const Lint& lint) {
  std::set<std::string> found;
  for (const ScriptFinding& finding : lint.findings) found.insert(finding.rule);
  return found;
}

TEST(ScriptRules, each_finds_its_example_and_not_the_mended_one) {
  for (const Rule* rule : all_rules()) {
    if (rule->bad.empty()) continue;  // those of sites have tests of their own
    const std::string name(rule->name);
    EXPECT_TRUE(rules_of(lint(rule->bad)).contains(name)) << name;
    EXPECT_FALSE(rules_of(lint(rule->good)).contains(name)) << name;
  }
}

TEST(ScriptRules, what_was_mended_is_not_found_again) {
  for (const Rule* rule : all_rules()) {
    const Lint before = lint(rule->bad);
    std::vector<ScriptFinding> own;
    for (const ScriptFinding& finding : before.findings) {
      if (finding.rule == rule->name && !finding.edits.empty()) own.push_back(finding);
    }
    if (own.empty()) continue;
    const std::string mended = apply_edits(before.text, own);
    EXPECT_FALSE(rules_of(lint(mended)).contains(std::string(rule->name))) << rule->name << "\n" << mended;
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
  const Lint found = lint(
      "#!/bin/bash\n"
      "#SBATCH --ntaks-per-node=4 --time=2h\n"
      "#SBATCH --output=logs/%j.out\n"
      "cd $SLURM_TMPDIR\n"
      "#SBATCH --mem=4G\n"
      "python -u train.py\n");
  EXPECT_THAT(names(found), ElementsAre("2:job:misspelt-option", "2:job:time-format", "3:job:log-folder",
                                        "5:job:late-directive", "6:job:results-left"));
  EXPECT_EQ(
      found.findings[0].text,
      "--ntaks-per-node: no such option, and sbatch refuses the script; did you mean --ntasks-per-node?");
  EXPECT_EQ(found.findings[0].column, 9u);
  EXPECT_EQ(found.findings[0].fix, "#SBATCH --ntasks-per-node=4 --time=2h");
  EXPECT_EQ(found.findings[2].text,
            "log folder logs does not exist: before Slurm 23.02 the job ends at once and leaves no word");
  EXPECT_EQ(found.findings[2].fix, "mkdir -p logs");
  EXPECT_TRUE(found.loses_job());
}

TEST(ScriptLint, a_fix_keeps_options_before_commands) {
  const Lint found = lint(
      "#!/bin/bash\n#SBATCH -n 1 --time=1\nmodule load a\n#SBATCH --mem=4G\npython -u train.py | tee log\n");
  EXPECT_EQ(apply_edits(found.text, found.findings),
            "#!/bin/bash\n#SBATCH -n 1 --time=1\n#SBATCH --mem=4G\nset -o pipefail\nmodule load a\npython -u "
            "train.py | tee log\n");
}

TEST(ScriptLint, commands_behind_srun_and_in_quotes_are_seen) {
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

TEST(ScriptLint, names_in_angle_brackets_are_left_to_be_filled_in) {
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

TEST(ScriptLint, what_a_program_or_a_guide_would_have_filled_in_is_told) {
  EXPECT_THAT(names(lint("#!/bin/bash\n#SBATCH --account={account}\n#SBATCH --time=1:00\n#SBATCH -J {name}\n"
                         "./run --weights ./path_to_weights.ckpt\n")),
              ElementsAre("2:job:placeholder", "4:advice:placeholder", "5:job:placeholder"));
  // Names of options, variables and programs.
  EXPECT_THAT(
      names(lint("#!/bin/bash\n#SBATCH --time=1:00\npath_to_data=/d\n./path_to_graph.sh --path_to_data "
                 "\"$path_to_data\" {1..3}\n")),
      IsEmpty());
}

TEST(ScriptLint, of_a_kind_of_gpu_without_a_count_slurm_takes_one) {
  const std::string rest = "\n#SBATCH --time=1:00\n./run\n";
  EXPECT_THAT(names(lint("#!/bin/bash\n#SBATCH --gpus-per-node=a100" + rest)), IsEmpty());
  EXPECT_THAT(names(lint("#!/bin/bash\n#SBATCH --gpus-per-node=a100:two" + rest)),
              ElementsAre("2:job:option-value"));
}

TEST(ScriptLint, no_gpus_are_right_where_none_is_to_be_used) {
  const std::string head = "#!/bin/bash\n#SBATCH --gres=gpu:0\n#SBATCH --time=1:00\n";
  EXPECT_THAT(rules_of(lint(head + "nvidia-smi\n")), ::testing::Contains("zero-gpus"));
  EXPECT_THAT(rules_of(lint(head + "export CUDA_VISIBLE_DEVICES=\"\"\n./run\n")), IsEmpty());
}

TEST(ScriptLint, an_array_that_sbatch_cannot_read_is_told) {
  const std::string rest = "\n#SBATCH --time=1:00\n./run $SLURM_ARRAY_TASK_ID\n";
  EXPECT_THAT(names(lint("#!/bin/bash\n#SBATCH --array=0-##count##" + rest)),
              ElementsAre("2:job:option-value"));
  for (const char* right : {"0", "1-4%2", "1,5,7-20:2%4"})
    EXPECT_THAT(rules_of(lint(std::string("#!/bin/bash\n#SBATCH --array=") + right + rest)),
                ::testing::Not(::testing::Contains("option-value")))
        << right;
}

TEST(ScriptLint, a_directive_without_its_hash_is_told) {
  const Lint found = lint("#!/bin/bash\n#SBATCH --time=1:00\nSBATCH --gres=gpu:1\n./run\n");
  EXPECT_THAT(names(found), ElementsAre("3:job:not-a-directive"));
  EXPECT_THAT(apply_edits(found.text, found.findings), HasSubstr("\n#SBATCH --gres=gpu:1\n"));
}

TEST(ScriptLint, what_the_last_command_keeps_with_tee_hides_that_it_failed) {
  const std::string head = "#!/bin/bash\n#SBATCH --time=1:00\n";
  EXPECT_THAT(names(lint(head + "pixi run bash all.sh 2>&1 | tee all.log\n")),
              ElementsAre("3:job:hidden-failure"));
  EXPECT_THAT(rules_of(lint(head + "pixi run bash all.sh 2>&1 | tee all.log\nmv all.log logs\n")),
              ::testing::Not(::testing::Contains("hidden-failure")));
  EXPECT_THAT(rules_of(lint(head + "nvidia-smi | tee gpus.txt\n")),
              ::testing::Not(::testing::Contains("hidden-failure")));
}

TEST(ScriptLint, a_long_dash_of_a_command_is_told) {
  const Lint found =
      lint("#!/bin/bash\n#SBATCH --time=1:00\nsingularity run \u2013nv a.sif\necho \u2013 a\n");
  EXPECT_THAT(names(found), ElementsAre("3:job:long-dash"));
  EXPECT_THAT(apply_edits(found.text, found.findings), HasSubstr("run --nv a.sif"));
}

TEST(ScriptLint, an_agent_that_asks_slurm_for_its_nodes_needs_one_on_each) {
  const std::string head = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --time=1:00\n";
  EXPECT_THAT(rules_of(lint(head + "oumi distributed torchrun -m oumi train\n")),
              ::testing::Contains("agent-on-first-node"));
  EXPECT_THAT(rules_of(lint(head + "srun --ntasks-per-node=1 oumi distributed torchrun -m oumi train\n")),
              ::testing::Not(::testing::Contains("agent-on-first-node")));
}

TEST(ScriptLint, other_languages_are_read_down_to_their_first_line_of_code) {
  const Lint found =
      lint("#!/usr/bin/env python3\n#SBATCH --time-min=1 --time=2\nimport os\nif x: print('a\n");
  EXPECT_THAT(names(found), IsEmpty());
  EXPECT_THAT(names(lint("#!/usr/bin/env python3\n#SBATCH --tine=1\nx = 1\n")),
              ElementsAre("2:job:misspelt-option"));
}

TEST(ScriptLint, line_ends_of_dos_are_told_once_and_read_over) {
  const Lint found = lint("#!/bin/bash\r\n#SBATCH --tine=1\r\necho a\r\n");
  EXPECT_THAT(names(found), ElementsAre("1:job:dos-line-ends", "2:job:misspelt-option"));
  EXPECT_EQ(apply_edits(found.text, found.findings), "#!/bin/bash\n#SBATCH --time=1\necho a\n");
}

TEST(ScriptLint, limits_and_opinions_are_those_of_the_site) {
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
  const Lint found = lint(
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
            "--gres: 8 on each node, and no node has more than 4 (site narval); see "
            "https://docs.example.org/narval (2026-04-18)");
  EXPECT_THAT(found.findings[6].fix, HasSubstr("pip install --no-index a"));
}

TEST(ScriptLint, variables_that_sbatch_obeys_count_for_the_site) {
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
  EXPECT_EQ(unset[0].text, "--account: not set, and site narval wants one");
  const auto set = found([](std::string_view name) {
    return name == "SBATCH_ACCOUNT"     ? std::optional("def-x")
           : name == "SBATCH_TIMELIMIT" ? std::optional("2-00")
                                        : std::nullopt;
  });
  ASSERT_EQ(set.size(), 1u);
  EXPECT_EQ(set[0].text,
            "--time: 2d is over the limit of every job (1d, site narval) (SBATCH_TIMELIMIT of your shell)");
}

TEST(ScriptLint, a_time_that_runs_never_needed_is_told_with_the_shortest_safe_one) {
  const auto found = [](std::string_view time, std::chrono::minutes took) {
    return lint_script("a.sh", "#!/bin/bash\n#SBATCH --time=" + std::string(time) + "\n./a\n",
                       {.directory = {}, .took = took, .times = 3})
        .findings;
  };
  using std::chrono::minutes;
  const auto far = found("20:00:00", minutes(42));
  ASSERT_EQ(far.size(), 1u);
  EXPECT_EQ(far[0].text,
            "20h asked for, and 3 runs of this script took 42 min 00 s at most: 1h15m is safe, and starts "
            "sooner in a "
            "gap");
  EXPECT_EQ(far[0].fix,
            "#SBATCH --time=01:15:00    (when it would start: stoker submit --check --sbatch=--time=01:15:00 "
            "a.sh)");
  EXPECT_THAT(found("2:00:00", minutes(42)), IsEmpty());
  EXPECT_THAT(found("1:00:00", minutes(1)), IsEmpty());
}

TEST(ScriptLint, the_tool_that_fits_is_told_with_its_reason) {
  const auto found = [](std::string_view text) {
    for (const ScriptFinding& finding :
         lint("#!/bin/bash\n#SBATCH --time=2\n" + std::string(text)).findings) {
      if (finding.rule == "fitting-tool") return finding.fix;
    }
    return std::string();
  };
  EXPECT_EQ(found("#SBATCH --array=1-10%1\npython -u a.py --checkpoint c\n"),
            "stoker init --from SCRIPT: chain: {until: done, time_per_link: ...}");
  EXPECT_EQ(found("#SBATCH --array=1-10%1\npython -u a.py\n"), "");
  EXPECT_EQ(found("for i in 1 2 3; do\n  sbatch --dependency=afterok:$j a.sh\ndone\n"),
            "chain: {until: done, time_per_link: ...}, or after: [another.yaml]");
  EXPECT_EQ(found("for i in {1..8}; do\n  python -u a.py $i &\ndone\nwait\n"), "#SBATCH --array=1-8");
  EXPECT_EQ(found("for i in 1 2 3; do\n  for j in a b; do\n    python -u a.py $i $j\n  done\ndone\n"),
            "stoker submit with array: {over: configs.csv}, a row for each of them");
  EXPECT_EQ(found("for i in 1 2; do\n  python -u a.py $i\ndone\n"), "");
}

TEST(ScriptLint, files_that_are_no_scripts_are_refused) {
  const TempDirectory folder;
  const auto problem = [&](std::string_view name) { return load_script(folder / name).status().to_string(); };
  const std::string path = folder.path().string();
  EXPECT_EQ(problem("none"), path + "/none: no such file or directory");
  EXPECT_EQ(problem(""), path + "/: is a folder, a file was expected");
  ASSERT_TRUE(write_file(folder / "zero", std::string_view("#!/bin/sh\n\0", 11)).ok());
  EXPECT_EQ(problem("zero"), path + "/zero: a zero byte at byte 10, which Slurm refuses in a script");
  ASSERT_TRUE(write_file(folder / "empty", "").ok());
  EXPECT_EQ(problem("empty"), path + "/empty: is empty");
  auto large = File::create(folder / "large");
  ASSERT_TRUE(large.ok() && large->truncate(100'000'000).ok());
  EXPECT_EQ(problem("large"), path + "/large: 100000000 bytes, and Slurm takes scripts of 4194304 at most");
}

TEST(ScriptLint, a_line_that_never_ends_is_shown_in_part) {
  const Lint found = lint("#!/bin/bash\n./a --seed $RANDOM " + std::string(3'000'000, 'y') + "\n");
  ASSERT_EQ(found.findings.size(), 1u);
  EXPECT_LT(found.findings[0].excerpt.size(), 500u);
  const Lint crosses = lint("#!/bin/bash\n./a " + std::string(100'000, 'x') + "\n");
  ASSERT_EQ(crosses.findings.size(), 1u);
  EXPECT_LT(crosses.findings[0].text.size(), 500u);
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
}  // namespace stoker::explain
