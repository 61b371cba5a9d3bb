#include "script_lint/inner_command.h"

#include <algorithm>
#include <array>
#include <span>

namespace stoker::script_lint {
namespace {

using NameList = std::span<const std::string_view>;

bool is_in(NameList names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A program that runs another one, and its options with a separate value.
struct Wrapper {
  std::string_view program;
  NameList with_value;          // all other options have no value
  int operands = 0;             // arguments after the options
  bool sets_variables = false;  // NAME=value before the program
};

constexpr std::string_view kNone[] = {"-"};
constexpr std::string_view kEnv[] = {"-u", "--unset", "-C", "--chdir", "-S"};
constexpr std::string_view kNice[] = {"-n", "--adjustment"};
constexpr std::string_view kTimeout[] = {"-s", "--signal", "-k", "--kill-after"};
constexpr std::string_view kStdbuf[] = {"-i", "-o", "-e"};
constexpr std::string_view kNumactl[] = {"-N", "-m", "-C", "-i", "-p"};
constexpr std::string_view kTime[] = {"-f", "-o", "--format", "--output"};
constexpr std::string_view kSudo[] = {"-u", "-g"};
constexpr std::string_view kConda[] = {"-n", "--name", "-p", "--prefix", "--cwd"};
constexpr std::string_view kContainer[] = {
    "-B",        "--bind",    "--env",           "--pwd", "-W",         "--workdir",       "-H",
    "--home",    "--overlay", "--cwd",           "-o",    "--env-file", "--cleanenv-file", "-S",
    "--scratch", "--mount",   "--fakeroot-user", "-b",    "--app"};
constexpr std::string_view kEnroot[] = {"-m", "--mount", "-e", "--env", "-c", "--rc"};
constexpr std::string_view kSsh[] = {"-i", "-l", "-p", "-o", "-F", "-J", "-L",
                                     "-R", "-D", "-W", "-b", "-c", "-e", "-m"};
constexpr std::string_view kMpi[] = {"-n",
                                     "-np",
                                     "--np",
                                     "-N",
                                     "-H",
                                     "--host",
                                     "-host",
                                     "--hostfile",
                                     "-hostfile",
                                     "-machinefile",
                                     "--machinefile",
                                     "-f",
                                     "-x",
                                     "--map-by",
                                     "-map-by",
                                     "--rank-by",
                                     "--bind-to",
                                     "-bind-to",
                                     "-ppn",
                                     "--ppn",
                                     "-npernode",
                                     "--npernode",
                                     "-wdir",
                                     "-wd",
                                     "--wdir",
                                     "-rf",
                                     "--rankfile",
                                     "-hosts",
                                     "-perhost",
                                     "-envlist",
                                     "-c",
                                     "-cpus-per-proc",
                                     "--timeout",
                                     "-launcher",
                                     "-bootstrap",
                                     "-p",
                                     "-output-filename",
                                     "--output-filename",
                                     "-outfile-pattern",
                                     "-errfile-pattern",
                                     "-prefix",
                                     "--prefix",
                                     "-rmk",
                                     "-iface",
                                     "-tune",
                                     "--tune"};
constexpr std::string_view kMpiTwo[] = {"--mca", "-mca", "--gmca", "-gmca", "-genv", "-env", "--prtemca"};

constexpr Wrapper kWrappers[] = {
    {"nohup", kNone},       {"exec", kNone},       {"command", kNone},       {"builtin", kNone},
    {"setsid", kNone},      {"unbuffer", kNone},   {"catchsegv", kNone},     {"ionice", kNice},
    {"env", kEnv, 0, true}, {"nice", kNice},       {"timeout", kTimeout, 1}, {"stdbuf", kStdbuf},
    {"numactl", kNumactl},  {"taskset", kNone, 1}, {"time", kTime},          {"sudo", kSudo}};

// Index of the first word at or after `at` that is no option.
std::size_t behind_options(const std::vector<std::string>& words, std::size_t at, NameList with_value) {
  while (at < words.size() && words[at].starts_with('-') && words[at].size() > 1) {
    if (words[at] == "--") return at + 1;
    at += is_in(with_value, words[at]) ? 2 : 1;
  }
  return at;
}

// Options of srun without a value, and the same for its letters.
constexpr std::string_view kSrunAlone[] = {"--contiguous",
                                           "--disable-status",
                                           "--exact",
                                           "--exclusive",
                                           "--help",
                                           "--hold",
                                           "--immediate",
                                           "--kill-on-bad-exit",
                                           "--label",
                                           "--multi-prog",
                                           "--no-allocate",
                                           "--no-kill",
                                           "--overcommit",
                                           "--overlap",
                                           "--oversubscribe",
                                           "--preserve-env",
                                           "--propagate",
                                           "--pty",
                                           "--quiet",
                                           "--quit-on-interrupt",
                                           "--reboot",
                                           "--resv-ports",
                                           "--spread-job",
                                           "--test-only",
                                           "--unbuffered",
                                           "--usage",
                                           "--use-min-nodes",
                                           "--verbose",
                                           "--version",
                                           "--x11",
                                           "--no-bell",
                                           "--interactive",
                                           "--whole",
                                           "--container-writable",
                                           "--no-container-mount-home",
                                           "--container-mount-home",
                                           "--no-container-entrypoint",
                                           "--container-readonly",
                                           "--no-container-remap-root",
                                           "--no-requeue",
                                           "--requeue",
                                           "--send-libs",
                                           "--nonice",
                                           "--stepmgr"};
constexpr std::string_view kSrunLetters = "EHkKlOqQsuvVXZhI";

std::size_t behind_srun(const std::vector<std::string>& words) {
  std::size_t at = 1;
  while (at < words.size() && words[at].starts_with('-') && words[at].size() > 1) {
    const std::string& word = words[at];
    if (word == "--") return at + 1;
    const bool is_long = word.starts_with("--");
    const bool is_alone = is_long ? word.find('=') != std::string::npos || is_in(kSrunAlone, word)
                                  : word.size() > 2 || kSrunLetters.find(word[1]) != std::string_view::npos;
    at += is_alone ? 1 : 2;
  }
  return at;
}

std::size_t behind_mpi(const std::vector<std::string>& words) {
  std::size_t at = 1;
  while (at < words.size() && words[at].starts_with('-') && words[at].size() > 1) {
    at += is_in(kMpiTwo, words[at]) ? 3 : is_in(kMpi, words[at]) ? 2 : 1;
  }
  return at;
}

// A program that scripts give to the runscript of an image.
bool is_usual_program(std::string_view word) {
  constexpr std::string_view kNames[] = {"bash",   "sh",      "torchrun", "accelerate", "deepspeed",
                                         "mpirun", "mpiexec", "Rscript",  "env",        "julia",
                                         "pip",    "conda",   "jupyter"};
  const std::string_view name = word.substr(word.rfind('/') + 1);
  return is_in(kNames, name) || (name.starts_with("python") && !name.ends_with(".py"));
}

// "apptainer exec --nv image.sif python": the word after the image.
std::size_t behind_image(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.size();
  const std::size_t verb = behind_options(words, 1, kNone);
  if (verb >= words.size() || (words[verb] != "exec" && words[verb] != "run")) return words.size();
  const std::size_t program = behind_options(words, verb + 1, kContainer) + 1;
  // "run" passes the words to the image's runscript; most runscripts start what looks like a program.
  if (words[verb] == "run" && program < words.size() && !is_usual_program(words[program]))
    return words.size();
  return program;
}

}  // namespace

bool is_launcher(std::string_view program) {
  constexpr std::array<std::string_view, 7> kNames = {"srun",  "mpirun",        "mpiexec", "prun",
                                                      "ibrun", "mpiexec.hydra", "jsrun"};
  return is_in(kNames, program);
}

std::optional<std::size_t> inner_command(const std::string& program, const std::vector<std::string>& words) {
  std::size_t at = words.size();
  if (program == "srun") {
    at = behind_srun(words);
  } else if (is_launcher(program)) {
    at = behind_mpi(words);
  } else if (program == "singularity" || program == "apptainer") {
    at = behind_image(words);
  } else if ((program == "conda" || program == "mamba" || program == "micromamba" || program == "poetry" ||
              program == "uv" || program == "pipenv") &&
             words.size() > 2 && words[1] == "run") {
    at = behind_options(words, 2, kConda);
  } else if (program == "enroot" && words.size() > 2 && words[1] == "start") {
    at = behind_options(words, 2, kEnroot) + 1;
  } else if (program == "ssh") {
    at = behind_options(words, 1, kSsh) + 1;
  } else {
    for (const Wrapper& wrapper : kWrappers) {
      if (wrapper.program != program) continue;
      at = behind_options(words, 1, wrapper.with_value) + static_cast<std::size_t>(wrapper.operands);
      while (wrapper.sets_variables && at < words.size() && words[at].find('=') != std::string::npos) ++at;
    }
  }
  return at < words.size() ? std::optional(at) : std::nullopt;
}

}  // namespace stoker::script_lint
