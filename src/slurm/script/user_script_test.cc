#include "slurm/script/user_script.h"

#include <gmock/gmock.h>

namespace stoker::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kScript =
    "#!/bin/bash -l\n"
    "# a course's script\n"
    "#SBATCH -J demo  # the name\n"
    "\n"
    "#SBATCH --array=1-10%1   # 10 links\n"
    "  # indented\n"
    "#SBATCH -o \"logs/%x of me.out\" --error logs/%j.err -N2 --exclusive\n"
    "#PBS -l walltime=1:00\n"
    "module load python\n"
    "#SBATCH --time=1:00\n";

UserScript script_of(std::string_view text) {
  auto script = read_user_script("a.sh", text);
  EXPECT_TRUE(script.ok()) << script.status().to_string();
  return script.ok() ? *script : UserScript{};
}

std::string problem(std::string_view text) { return read_user_script("a.sh", text).status().to_string(); }

TEST(UserScript, reads_options_like_sbatch_up_to_the_first_command) {
  const UserScript script = script_of(kScript);
  EXPECT_THAT(script.header,
              ElementsAre("#SBATCH -J demo  # the name", "#SBATCH --array=1-10%1   # 10 links",
                          "#SBATCH -o \"logs/%x of me.out\" --error logs/%j.err -N2 --exclusive",
                          "#PBS -l walltime=1:00"));
  std::vector<std::string> read;
  for (const SbatchOption& each : script.options)
    read.push_back(format("{}:{}={}", each.line, each.name, each.value));
  EXPECT_THAT(read, ElementsAre("3:--job-name=demo", "5:--array=1-10%1", "7:--output=logs/%x of me.out",
                                "7:--error=logs/%j.err", "7:--nodes=2", "7:--exclusive="));
  EXPECT_EQ(script.find("--output")->value, "logs/%x of me.out");
  EXPECT_EQ(script.find("--time"), nullptr);
}

TEST(UserScript, the_last_of_two_options_counts_and_abbreviations_work) {
  const UserScript script = script_of("#!/bin/sh\n#SBATCH --output=a\n#SBATCH --outp b\n#SBATCH --gp 1\n");
  EXPECT_EQ(script.find("--output")->value, "b");
  EXPECT_NE(script.find("--gp"), nullptr);  // could be --gpu-bind or --gpus
}

TEST(UserScript, refuses_invalid_scripts_with_a_cure) {
  EXPECT_EQ(problem(""), "a.sh: is empty");
  EXPECT_EQ(problem("echo hello\n"),
            "a.sh: its first line is not #! and an interpreter, so Slurm rejects it\n"
            "  try: sed -i '1i #!/bin/bash' a.sh");
  EXPECT_EQ(problem("#!/bin/bash\r\necho\r\n"),
            "a.sh: has DOS line endings, which Slurm rejects\n  try: sed -i 's/\\r$//' a.sh");
  EXPECT_EQ(problem("#!/bin/bash\n" + std::string(kLargestScript, 'x')),
            "a.sh: 4194316 bytes, but Slurm accepts at most 4194304");
  EXPECT_EQ(problem(std::string_view("#!/bin/bash\n#SBATCH -J a\0b\n", 26)),
            "a.sh:2: zero byte in an sbatch option");
}

Wrapping wrapping() {
  Wrapping wrapping;
  wrapping.title = "a.sh, attempt 1 of run r, submitted by stoker 0.1.0";
  wrapping.job_name = "a.sh";
  wrapping.comment = "stoker:r/1";
  wrapping.log = "/runs/r/attempts/1/slurm.log";
  wrapping.command = {"/opt/stoker", "run", "/runs/r/attempts/1"};
  return wrapping;
}

TEST(UserScript, the_options_of_the_script_override_added_ones) {
  const auto text = wrap_user_script(script_of(kScript), wrapping());
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, R"(#!/bin/bash
# a.sh, attempt 1 of run r, submitted by stoker 0.1.0
#SBATCH --job-name=a.sh
# Identifies the job if its id could not be recorded.
#SBATCH --comment=stoker:r/1
# The script names no log, so it is kept in the run folder; a requeued job appends to it.
#SBATCH --output=/runs/r/attempts/1/slurm.log
#SBATCH --open-mode=append
# The script's own options, unchanged. Options that come later take precedence.
#SBATCH -J demo  # the name
#SBATCH --array=1-10%1   # 10 links
#SBATCH -o "logs/%x of me.out" --error logs/%j.err -N2 --exclusive
#PBS -l walltime=1:00

# exec: stoker replaces this shell. It runs a copy of the script with the script's interpreter, forwards
# every signal to it and records how it ended.
exec /opt/stoker run /runs/r/attempts/1
)");
}

TEST(UserScript, keeps_the_comment_of_a_script) {
  Wrapping plain = wrapping();
  plain.log.clear();
  plain.extra = {"--time=0:10:00", "-C v100"};
  const auto text = wrap_user_script(script_of("#!/bin/sh\n#SBATCH --comment=mine\ntrue\n"), plain);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->find("stoker:r/1"), std::string::npos);
  EXPECT_THAT(*text, HasSubstr("#SBATCH --comment=mine\n# Requested with --sbatch.\n"
                               "#SBATCH --time=0:10:00\n#SBATCH -C v100\n\n"));
}

TEST(UserScript, every_line_of_the_wrapper_except_the_last_is_a_comment) {
  const std::string hostile = "x\"'$(touch PWNED)`touch PWNED`;\\ #é";
  Wrapping wild = wrapping();
  wild.title = wild.job_name = wild.comment = wild.log = hostile;
  wild.extra = {"--constraint=" + hostile};
  wild.command = {"/opt/stoker", hostile};
  const auto text =
      wrap_user_script(script_of("#!/bin/sh\n\f#x; touch PWNED\n#SBATCH -J $(touch PWNED)\n"), wild);
  ASSERT_TRUE(text.ok());
  const auto lines = split(*text, '\n');
  EXPECT_EQ(lines[lines.size() - 3], "# shellcheck disable=SC2016");
  for (std::size_t i = 0; i + 2 < lines.size(); ++i)
    EXPECT_TRUE(lines[i].empty() || lines[i].front() == '#') << lines[i];
  EXPECT_EQ(lines[lines.size() - 2], "exec /opt/stoker " + shell_quote(hostile));
}

TEST(UserScript, refuses_values_that_a_line_cannot_contain) {
  Wrapping wild = wrapping();
  wild.job_name = "a\nb";
  EXPECT_EQ(wrap_user_script({}, wild).status().message(),
            "--job-name: 'a\\x0ab' contains a control character, which an #SBATCH line cannot contain");
  wild = wrapping();
  wild.command.emplace_back("a\0b", 3);
  EXPECT_EQ(wrap_user_script({}, wild).status().message(), "command: an argument contains a zero byte");
}

TEST(UserScript, finds_the_folder_of_a_log_path_without_placeholders) {
  EXPECT_EQ(log_folder("logs/%x-%j.out"), "logs");
  EXPECT_EQ(log_folder("/scratch/me/%j.out"), "/scratch/me");
  EXPECT_EQ(log_folder("/%j.out"), "/");
  EXPECT_EQ(log_folder("slurm-%j.out"), "");
  EXPECT_EQ(log_folder("logs/%u/%j.out"), "");
}

TEST(UserScript, an_option_has_its_position_in_the_line) {
  const std::string_view line = "#SBATCH -N 2 --output=\"a b\" -c4 x --time= 3 # more";
  const auto options = read_option_line(line, 7);
  ASSERT_EQ(options.size(), 4u);
  const auto piece = [&](std::size_t begin, std::size_t end) { return line.substr(begin, end - begin); };
  EXPECT_EQ(piece(options[0].begin, options[0].end), "-N 2");
  EXPECT_EQ(piece(options[0].value_begin, options[0].end), "2");
  EXPECT_EQ(piece(options[1].begin, options[1].end), "--output=\"a b\"");
  EXPECT_EQ(piece(options[1].value_begin, options[1].end), "\"a b\"");
  EXPECT_EQ(piece(options[2].value_begin, options[2].end), "4");
  EXPECT_EQ(options[2].typed, "-c");
  EXPECT_EQ(options[2].stray, "x");
  EXPECT_TRUE(options[3].has_equals);
  EXPECT_EQ(options[3].value, "");
  EXPECT_EQ(options[3].stray, "3");
  EXPECT_EQ(options[3].line, 7);
  EXPECT_TRUE(read_option_line("# SBATCH -N 2", 1).empty());
}

TEST(UserScript, reads_memory_and_times_like_slurm) {
  EXPECT_EQ(parse_slurm_memory("118GB"), ByteCount{118ull << 30});
  EXPECT_EQ(parse_slurm_memory("1Gb"), ByteCount{1ull << 30});
  EXPECT_EQ(parse_slurm_memory("32000"), ByteCount{32000ull << 20});
  EXPECT_EQ(parse_slurm_memory("0"), ByteCount{0});
  EXPECT_EQ(parse_slurm_memory("4X"), std::nullopt);
  EXPECT_EQ(parse_slurm_memory("4GiB"), std::nullopt);
  EXPECT_EQ(parse_slurm_memory(""), std::nullopt);
  EXPECT_EQ(parse_slurm_memory("99999999999999999T"), std::nullopt);
  using std::chrono::seconds;
  EXPECT_EQ(parse_slurm_limit("90"), seconds(5400));
  EXPECT_EQ(parse_slurm_limit("90:30"), seconds(5430));
  EXPECT_EQ(parse_slurm_limit("1:30:00"), seconds(5400));
  EXPECT_EQ(parse_slurm_limit("0-03:00"), seconds(10800));
  EXPECT_EQ(parse_slurm_limit("2-12"), seconds(216000));
  EXPECT_EQ(parse_slurm_limit("1-12:30"), seconds(131400));
  EXPECT_EQ(parse_slurm_limit("4-00:00:00"), seconds(345600));
  EXPECT_EQ(parse_slurm_limit("1 hour"), std::nullopt);
  EXPECT_EQ(parse_slurm_limit("UNLIMITED"), std::nullopt);
  EXPECT_EQ(parse_slurm_limit("1:2:3:4"), std::nullopt);
  EXPECT_EQ(parse_slurm_limit(""), std::nullopt);
}

TEST(UserScript, tasks_of_arrays_are_counted) {
  EXPECT_EQ(count_tasks("1-10%1"), 10u);
  EXPECT_EQ(count_tasks("0-15:4"), 4u);
  EXPECT_EQ(count_tasks("1,3,5-7%2"), 5u);
  EXPECT_EQ(count_tasks("7"), 1u);
  EXPECT_EQ(count_tasks("x"), 0u);
  EXPECT_EQ(count_tasks("5-1"), 0u);
  EXPECT_EQ(count_tasks("0-9:0"), 0u);
}

}  // namespace
}  // namespace stoker::slurm
