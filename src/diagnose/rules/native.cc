// Rules for what compiled programs print before they end: failed checks, damaged memory, panics.
#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

using enum FailureClass;

constexpr FailureRule kNativeRules[] = {
    {"assertion-of-c", root, "Assertion `\nassertion \"",
     R"re((?:^|[\s:])([\w./+-]+:\d+): (?:.*: )?Assertion [`'](.*)' failed|assertion "(.*)" failed: file "([^"]+)")re",
     "an assertion of the program failed[[ in {1}]][[ in {4}]]: {2}{3}",
     "compare it with the settings and the input of the program; the assertion names the condition that has "
     "to "
     "hold",
     "", "solve: grid.cpp:31: void cut(int): Assertion `n > 0' failed.", "source of glibc, assert.c"},
    {"check-failed", root,
     "] Check failed: ", R"(^(?:\[[^\]]*\] )?F\d{4} .* ([\w./-]+:\d+)\] Check failed: (.*))",
     "a check of the program failed in {1}: {2}", "compare it with the settings and the input of the program",
     "", "F1121 10:03:11.250000    7 table.cc:84] Check failed: rows == 4 (3 vs. 4)",
     "source of glog, logging.cc"},
    {"heap-damaged", ending,
     "free(): \nmalloc(): \nrealloc(): \nmunmap_chunk(): \ndouble free or corruption\ncorrupted size vs\n"
     "corrupted double-linked\nstack smashing detected\ncorrupted unsorted chunks",
     R"(^(?:\*\*\* Error in .*: )?(?:\*\*\* )?((?:free|malloc|realloc|munmap_chunk|calloc)\(\): .*|double free or corruption.*|corrupted .*|stack smashing detected)(?: \*\*\*.*)?$)",
     "the program damaged its own memory: {1}",
     "build it with `-g -fsanitize=address`: its report names the line", "",
     "free(): invalid pointer\n*** stack smashing detected ***: terminated\ndouble free or corruption (out)\n"
     "malloc(): corrupted top size",
     "source of glibc, malloc.c"},
    {"rust-panic", root, "' panicked at\n) panicked at",
     R"(^thread '[^']*' (?:\(\d+\) )?panicked at (?:'(.*)', )?(\S+:\d+))",
     "the program panicked at {2}[[: {1}]]", "`export RUST_BACKTRACE=1` before it shows the calls", "",
     "thread 'main' panicked at src/main.rs:4:10:", "source of Rust, panicking.rs"},
    {"fortran-end-of-file", root, "Fortran runtime error: End of file\nseverity (24)\nsevere (24)",
     R"(Fortran runtime error: End of file|forrtl: severe \(24\): end-of-file during read, unit \d+, file (\S+))",
     "the Fortran program read beyond the end of a file, which has fewer values than it reads[[: {1}]][[ "
     "({4})]]",
     "compare the file with the READ statement of that line: missing records, or a cut-off copy", "",
     "Fortran runtime error: End of file\n"
     "forrtl: severe (24): end-of-file during read, unit 10, file /scratch/params.in",
     "source of libgfortran, error.c"},
    {"fortran-runtime", root, "Fortran runtime error", R"(Fortran runtime error: (.*))",
     "the Fortran program failed: {1}[[ ({4})]]",
     "the line above names its place; `-g -fbacktrace` shows the calls", "",
     "Fortran runtime error: Bad real number in item 1 of list input", "source of libgfortran, error.c"},
    {"go-panic", root, "panic: ", R"(^panic: (.*))", "the program panicked: {1}",
     "the stack below it names the line", "", "panic: runtime error: index out of range [5] with length 3",
     "source of Go, panic.go"},
    {"program-input-missing", general, "No such file or directory\nPermission denied",
     R"((?i)^(?:[\w.+/-]+: )?(?:error: |fatal: )?(?:cannot|can't|could not|couldn't|failed to|unable to|error while) (?:open|opening|read|reading|load|access|find) (?:the )?(?:(?:input|data|mesh|config\w*|file|image) )*['"`]?([^\s'"`:]*[/.][^\s'"`:]*)['"`]?(?:: |, | \()(No such file or directory|Permission denied))",
     "the program cannot open {1}: {2}",
     "use a path that exists on the compute node, not only on the login node", "ls -l {1}",
     "solve: cannot open input/mesh.bin: No such file or directory\n"
     "Error: could not open file 'data/a.h5': Permission denied",
     "source of many programs, perror()", kScriptContinues},
    {"program-input-not-opened", general, " open ",
     R"((?i)^(?:rank \d+: |[\w.+/-]+: )?(?:error: |fatal: )?(?:cannot|can't|could not|couldn't|failed to|unable to) open (?:the )?(?:(?:input|data|mesh|config\w*|file|image) )*['"`]?([\w./+-]*\w\.\w[\w.]*)['"`]?[.!]?$)",
     "the program cannot open {1}", "use a path that exists on the compute node, not only on the login node",
     "ls -l {1}", "rank 1: cannot open part.1.dat", "source of many programs", kScriptContinues,
     kFitsSeveral},
};

}  // namespace

std::span<const FailureRule> native_rules() { return kNativeRules; }

}  // namespace stoker::diagnose
