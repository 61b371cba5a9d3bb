#include "slurm/script/option_names.h"

#include <algorithm>
#include <iterator>

#include "slurm/script/script_writer.h"
#include "stoker/text.h"

namespace stoker::slurm {
namespace {

struct Letter {
  char letter;
  std::string_view name;
};

constexpr Letter kLetters[] = {
    {'A', "--account"},      {'a', "--array"},      {'b', "--begin"},    {'c', "--cpus-per-task"},
    {'C', "--constraint"},   {'d', "--dependency"}, {'D', "--chdir"},    {'e', "--error"},
    {'G', "--gpus"},         {'h', "--help"},       {'H', "--hold"},     {'i', "--input"},
    {'J', "--job-name"},     {'k', "--no-kill"},    {'L', "--licenses"}, {'M', "--clusters"},
    {'m', "--distribution"}, {'N', "--nodes"},      {'n', "--ntasks"},   {'o', "--output"},
    {'p', "--partition"},    {'q', "--qos"},        {'Q', "--quiet"},    {'s', "--oversubscribe"},
    {'t', "--time"},         {'V', "--version"},    {'v', "--verbose"},  {'W', "--wait"},
    {'w', "--nodelist"},     {'x', "--exclude"}};

// Long options of sbatch, 20.11 to 25.11.
constexpr std::string_view kLongOptions[] = {
    "--account",
    "--acctg-freq",
    "--array",
    "--batch",
    "--bb",
    "--bbf",
    "--begin",
    "--chdir",
    "--cluster",
    "--cluster-constraint",
    "--clusters",
    "--comment",
    "--consolidate-segments",
    "--constraint",
    "--container",
    "--container-id",
    "--context",
    "--contiguous",
    "--core-spec",
    "--cores-per-socket",
    "--cpu-freq",
    "--cpus-per-gpu",
    "--cpus-per-task",
    "--deadline",
    "--delay-boot",
    "--dependency",
    "--distribution",
    "--error",
    "--exclude",
    "--exclusive",
    "--export",
    "--export-file",
    "--external",
    "--extra",
    "--extra-node-info",
    "--get-user-env",
    "--gid",
    "--gpu-bind",
    "--gpu-freq",
    "--gpus",
    "--gpus-per-node",
    "--gpus-per-socket",
    "--gpus-per-task",
    "--gres",
    "--gres-flags",
    "--help",
    "--hint",
    "--hold",
    "--ignore-pbs",
    "--input",
    "--job-name",
    "--kill-on-invalid-dep",
    "--licenses",
    "--mail-type",
    "--mail-user",
    "--mcs-label",
    "--mem",
    "--mem-bind",
    "--mem-per-cpu",
    "--mem-per-gpu",
    "--mem-update",
    "--mincpus",
    "--network",
    "--nice",
    "--no-kill",
    "--no-requeue",
    "--nodefile",
    "--nodelist",
    "--nodes",
    "--ntasks",
    "--ntasks-per-core",
    "--ntasks-per-gpu",
    "--ntasks-per-node",
    "--ntasks-per-socket",
    "--ntasks-per-tres",
    "--oom-kill-step",
    "--open-mode",
    "--output",
    "--overcommit",
    "--oversubscribe",
    "--parsable",
    "--partition",
    "--power",
    "--prefer",
    "--priority",
    "--profile",
    "--propagate",
    "--qos",
    "--quiet",
    "--reboot",
    "--requeue",
    "--reservation",
    "--resources",
    "--resv-ports",
    "--segment",
    "--signal",
    "--sockets-per-node",
    "--spread-job",
    "--spread-segments",
    "--stepmgr",
    "--switches",
    "--tasks-per-node",
    "--test-only",
    "--thread-spec",
    "--threads-per-core",
    "--time",
    "--time-min",
    "--tmp",
    "--tres-bind",
    "--tres-per-task",
    "--uid",
    "--usage",
    "--use-min-nodes",
    "--verbose",
    "--version",
    "--wait",
    "--wait-all-nodes",
    "--wckey",
    "--wrap",
};

// Without a value, or with a value after = only.
constexpr std::string_view kFlagOptions[] = {"--contiguous",
                                             "--exclusive",
                                             "--external",
                                             "--get-user-env",
                                             "--help",
                                             "--hold",
                                             "--ignore-pbs",
                                             "--nice",
                                             "--no-kill",
                                             "--no-requeue",
                                             "--overcommit",
                                             "--oversubscribe",
                                             "--parsable",
                                             "--propagate",
                                             "--quiet",
                                             "--reboot",
                                             "--requeue",
                                             "--resv-ports",
                                             "--spread-job",
                                             "--stepmgr",
                                             "--spread-segments",
                                             "--test-only",
                                             "--usage",
                                             "--use-min-nodes",
                                             "--verbose",
                                             "--version",
                                             "--wait",
                                             "--consolidate-segments"};

// Short options of sbatch without a long name.
constexpr std::string_view kOtherLetters = "BFOS";

struct OtherName {
  std::string_view typed;
  std::string_view meant;
};

// Names of other schedulers and older releases, and obvious guesses.
constexpr OtherName kOtherNames[] = {
    {"--walltime", "--time"},     {"--timelimit", "--time"},     {"--time_limit", "--time"},
    {"--time-limit", "--time"},   {"--name", "--job-name"},      {"--queue", "--partition"},
    {"--memory", "--mem"},        {"--mem-per-node", "--mem"},   {"--log", "--output"},
    {"--stdout", "--output"},     {"--stderr", "--error"},       {"--email", "--mail-user"},
    {"--mail", "--mail-user"},    {"--workdir", "--chdir"},      {"--share", "--oversubscribe"},
    {"--processors", "--ntasks"}, {"--cpus", "--cpus-per-task"}, {"--project", "--account"}};

// With these options sbatch does not simply submit.
constexpr std::string_view kNotSubmitting[] = {"--help",    "--parsable", "--quiet", "--test-only", "--usage",
                                               "--version", "--verbose",  "--wait",  "--wrap"};

}  // namespace

std::string long_option(std::string_view word) {
  if (word.starts_with("--")) {
    // sbatch accepts unique prefixes of long options.
    std::string_view whole;
    for (std::string_view name : kLongOptions) {
      if (name == word) return std::string(word);
      if (!name.starts_with(word)) continue;
      if (!whole.empty()) return std::string(word);
      whole = name;
    }
    return std::string(whole.empty() ? word : whole);
  }
  for (const Letter& each : kLetters) {
    if (word[1] == each.letter) return std::string(each.name);
  }
  return std::string(word.substr(0, 2));
}

OptionName look_up_option(std::string_view name) {
  int wholes = 0;
  for (std::string_view each : kLongOptions) {
    if (each == name) return OptionName::known;
    wholes += each.starts_with(name) ? 1 : 0;
  }
  return wholes == 0 ? OptionName::unknown : wholes == 1 ? OptionName::known : OptionName::ambiguous;
}

bool takes_next_word(std::string_view name) {
  return std::find(std::begin(kFlagOptions), std::end(kFlagOptions), name) == std::end(kFlagOptions);
}

bool is_option_letter(char letter) {
  return kOtherLetters.find(letter) != std::string_view::npos ||
         std::any_of(std::begin(kLetters), std::end(kLetters),
                     [&](const Letter& each) { return each.letter == letter; });
}

std::string_view suggest_option(std::string_view word) {
  const std::string_view name = word.substr(0, word.find_first_of("=:"));
  for (const OtherName& other : kOtherNames) {
    if (other.typed == name) return other.meant;
  }
  return closest(name, kLongOptions);
}

Status check_user_option(std::string_view option) {
  const std::string shown = printable(option);
  if (has_control_character(option)) return invalid("'{}' contains a control character", shown);
  const std::string_view name = split_option(option).first;
  const bool is_long = name.size() > 2 && name.starts_with("--") && name[2] != '-';
  const bool is_short = name.size() >= 2 && name[0] == '-' && name[1] != '-';
  if (!is_long && !is_short) return invalid("'{}' is not an sbatch option (such as --time=1:00:00)", shown);
  if (option.size() > kLongestValue) return invalid("an option of {} bytes is too long", option.size());
  const std::string whole = long_option(name);
  if (std::find(std::begin(kNotSubmitting), std::end(kNotSubmitting), whole) != std::end(kNotSubmitting))
    return invalid("'{}': {} is not allowed here", shown, whole);
  return {};
}

}  // namespace stoker::slurm
