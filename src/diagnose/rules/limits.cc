// Rules for limits of the system and for programs that cannot start there.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kLimitRules[] = {
    {"cpu-time-limit", root, "CPU time limit exceeded\nCputime limit exceeded\nSIGXCPU",
     R"((?:CPU time limit exceeded|Cputime limit exceeded|SIGXCPU))",
     "the program used more CPU time than `ulimit -t` allows",
     "`ulimit -t unlimited` before it; on a login node start it as a job instead", "ulimit -t",
     "run.sh: line 8: 13737 CPU time limit exceeded python3 train.py", "source of bash, siglist.c"},
    {"exec-format", root, "Exec format error",
     R"((?:(\S+): cannot execute(?: binary file)?: Exec format error|Exec format error: '([^']+)'|execve\(\): (\S+): Exec format error))",
     "{1}{2}{3} cannot run on that node: it was built for a different processor, or it is damaged or no "
     "program",
     "compare `file FILE` with `uname -m`, and build it for that processor; a script needs a first line with "
     "`#!`",
     "uname -m",
     "bash: ./trainer: cannot execute binary file: Exec format error\n"
     "OSError: [Errno 8] Exec format error: './prepare.sh'",
     "source of Linux, binfmt; docker/cli#2925"},
    {"argument-list", root, "Argument list too long",
     R"((?:(\S+): Argument list too long|Argument list too long: '([^']+)'))",
     "too many arguments for {1}{2}: the list of files or the environment is too long",
     "pass the names by a pipe: `find . -type f -print0 | xargs -0 ls`; tar reads a list, `tar -c -T LIST -f "
     "FILE`",
     "",
     "prep.sh: line 4: /usr/bin/tar: Argument list too long\nOSError: [Errno 7] Argument list too long: 'ls'",
     "source of Linux, exec.c"},
    {"mpirun-as-root", root, "attempt to run as root", R"((\w+) has detected an attempt to run as root)",
     "{1} refuses to run as root", "start it as a normal user; in a container `mpirun --allow-run-as-root`",
     "", "mpirun has detected an attempt to run as root.", "source of Open MPI, help-orte-top.txt"},
    {"sanitizer-stack-overflow", root, "Sanitizer: stack-overflow",
     R"(ERROR: (\w+Sanitizer): stack-overflow)",
     "the stack overflowed {frame}: usually a function calls itself without an end ({1})",
     "end the recursion of the function that its stack repeats, or write it as a loop; a larger stack "
     "(`ulimit -s unlimited`) helps only if that depth is wanted",
     "", "==7==ERROR: AddressSanitizer: stack-overflow on address 0x7ffc (pc 0x55 bp 0x7f sp 0x7f T0)",
     "source of LLVM, asan_report.cpp"},
    {"sanitizer-report", root,
     "Sanitizer: ", R"(ERROR: (\w+Sanitizer): (?:attempting )?(detected memory leaks|[\w-]+))",
     "{1} stopped the program {frame}: {2}",
     "its report names the line and, for memory, where it was allocated and freed", "",
     "==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x6020 at pc 0x55 bp 0x7f sp 0x7f",
     "source of LLVM, asan_report.cpp"},
    {"thread-sanitizer", root,
     "SUMMARY: ThreadSanitizer: ", R"(SUMMARY: ThreadSanitizer: (.*?) (\S+:\d+)(?::\d+)?(?: in (.*))?$)",
     "ThreadSanitizer found a {1} in {2}[[, {3}]]",
     "protect that variable with a lock or make it atomic; the report above names both threads", "",
     "SUMMARY: ThreadSanitizer: data race /users/ada/mc.cpp:5 in work(int)",
     "source of LLVM, tsan_report.cpp"},
    {"undefined-behaviour", root, ": runtime error: ", R"(^(\S+:\d+):\d+: runtime error: (.*))",
     "undefined behaviour in {1}: {2}", "`export UBSAN_OPTIONS=print_stacktrace=1` shows the calls", "",
     "cut.cpp:3:5: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type "
     "'int'",
     "source of LLVM, ubsan_diag.cpp"},
    {"archive-cut-off", root,
     "gzip: \nxz: \nbzip2: \nzstd: \nunzip: \nThis does not look like a tar\nEnd-of-central-directory",
     R"(^(?:(?:gzip|xz|bzip2|zstd|unzip|tar)(?:: \(?[^:]*\)?)?: .*(?:[Uu]nexpected end|not in gzip format|invalid compressed data|File format not recognized|Compressed data is corrupt|not a bzip2 file|unsupported format|premature end)|tar: This does not look like a tar archive|\s*End-of-central-directory signature not found))",
     "an archive is truncated or damaged, or is none: a tool could not unpack it",
     "copy or download it again; compare `sha256sum` with the source", "",
     "gzip: stdin: unexpected end of file\nxz: a.tar.xz: Unexpected end of input\n"
     "tar: This does not look like a tar archive",
     "source of gzip, unzip.c"},
    {"command-failed", ending, "CalledProcessError: Command ",
     R"(CalledProcessError: Command '(?:\[')?(?:\S*/)?((?:[a-oq-zA-Z]|p[^y])[^\s'",\]/]*)['" ,][^\n]*(?:returned non-zero exit status (\d+)|died with <Signals\.(SIG\w+)))",
     "the command {1}, which the program runs, failed[[ with exit code {2}]][[ by {3}]] {frame}[[: {4}]]",
     "run that command alone: its own message is above, or was not shown", "",
     "subprocess.CalledProcessError: Command '['ffmpeg', '-i', 'a.mp4']' returned non-zero exit status 1.",
     "source of CPython, subprocess.py"},
};

}  // namespace

std::span<const FailureRule> limit_rules() { return kLimitRules; }

}  // namespace stoker::diagnose
