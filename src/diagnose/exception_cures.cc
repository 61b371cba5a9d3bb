#include "diagnose/exception_cures.h"

#include <re2/re2.h>

namespace stoker::diagnose {
namespace {

constexpr ExceptionCure kExceptionCures[] = {
    {R"((?:Attribute|Name|Key|Import)Error: .*Did you mean: )",
     "Python suggests the name that is meant, at the end of its message: correct that line"},
    {R"(JSONDecodeError\b)",
     "the text is empty, cut off or no JSON: `head -c 200 FILE` shows its start; a web page begins with `<`"},
    {R"(KeyError\b)",
     "the dictionary, table or configuration has no such key: print its keys before that line, and compare "
     "the "
     "spelling"},
    {R"(IndexError: (?:list|tuple|string|pop)\b)",
     "the list is shorter than its index: print both before that line; it may be empty, or have fewer "
     "entries than "
     "ranks or arguments"},
    {R"(IndexError\b)", "print the shape and the index before that line"},
    {R"(RecursionError\b)",
     "a function calls itself without an end: check the condition that ends it; `sys.setrecursionlimit` "
     "helps "
     "only if the depth is wanted"},
    {R"(ZeroDivisionError\b)",
     "a count or a sum is 0: print it before that line; a set of data may be empty"},
    {R"((?:NameError|UnboundLocalError)\b)",
     "define or import that name before the line; a name that is set only in one branch is missing in the "
     "other"},
    {R"(TypeError: .*(?:missing \d+ required|takes \d+ positional|got multiple values|takes from))",
     "compare the call with the signature of the function: another version of its library may have another "
     "one"},
    {R"(TypeError: unsupported operand type)",
     "print the types of both values: text from a file or the command line needs `int(x)` or `float(x)`"},
    {R"(AttributeError: '\w+' object has no attribute)",
     "the object has a type that the code does not expect, or its library has a different version: print "
     "`type(x)` "
     "before that line"},
    {R"(ValueError: (?:too many|not enough) values to unpack)",
     "the value has another number of parts than names: print it before that line"},
    {R"((?:builtins\.)?TimeoutError\b)",
     "find out what it waited for: a server, a process or a lock; or wait longer"},
    {R"(StopIteration\b)", "the iterator is empty or used up: build it again for each pass"},
};

// For failures that a program states in its own words: patterns in any case, at any place.
constexpr ExceptionCure kVerdictCures[] = {
    {R"(\blicen[cs]e)",
     "wait until one is free, or let Slurm count them (`#SBATCH --licenses=NAME:1`); run fewer jobs at once"},
    {R"(\b40[13]\b|\b(?:access|permission) ?denied|forbidden|unauthori[sz]ed)",
     "check the account, the token and its permissions for that path, then start it again"},
    {R"(\b(?:GB|GiB|MB|MiB|TB|TiB) free|\bnot enough space|\bfree space)",
     "delete what is not needed there, or use another disk"},
    {R"(\bneeds? Python|\brequires? Python|\bPython \d.* or (?:later|newer))",
     "use that version of Python: load its module, or make the environment with it"},
    {R"(converge|residual|rhat|r-hat|stagnat)",
     "more iterations or samples, a better start, a smaller step; check the model and its data"},
    {R"(\b(?:nan|not finite|infinite|diverged|blew up|blown up|drift|unstable|conserved|balance)\b)",
     "a smaller step or learning rate; check the inputs for NaN and wrong units"},
    {R"(\brestart\b.*\b(?:grid|match)|\bgrid\b.*\bmatch)",
     "use the restart file of that grid, or set the grid of that file"},
    {R"(\bno \w+ (?:\w+ )?(?:for|since|within) |\bstalled|\bwatchdog)",
     "find what it waited for: data, a file system or another process; `py-spy dump --pid PID` shows it"},
    {R"(\b(?:0|no) (?:\w+ ){0,2}(?:rows|images|files|samples|records|matches|left|found)|\bnothing to )",
     "print what was read and what the filter or the pattern keeps: its value or its folder may be wrong"},
    {R"(\btime (?:limit|budget))", "give it more time, or accept a less exact result"},
    {R"(\bcheckpoint\b|\blatest\b)",
     "check the path and the tag of the checkpoint: the folder above its steps is usually meant, and it must "
     "be complete"},
    {R"(\bexpected \d|\b(?:missing|gap)\b)",
     "produce the missing part again: its own log shows why it is missing"},
    {R"(\b(?:reference|deviates?|differs?|identical|reproduc)\b)",
     "compare versions, settings and data with the reference; renew it if the change is wanted"},
    {R"(\b(?:accuracy|score|gate|quality|threshold|f1|bleu|auc|metric)\b)",
     "check the data and the training that gave this value, or change the limit"},
};

}  // namespace

std::span<const ExceptionCure> exception_cures() { return kExceptionCures; }

std::string_view cure_of_exception(std::string_view exception) {
  for (const ExceptionCure& each : kExceptionCures) {
    const RE2 pattern{std::string("^(?:\\w+\\.)*(?:") + std::string(each.pattern) + ")"};
    if (RE2::PartialMatch(re2::StringPiece(exception.data(), exception.size()), pattern)) return each.cure;
  }
  return "";
}

std::span<const ExceptionCure> verdict_cures() { return kVerdictCures; }

std::string_view cure_of_verdict(std::string_view words) {
  for (const ExceptionCure& each : kVerdictCures) {
    const RE2 pattern{std::string("(?i)") + std::string(each.pattern)};
    if (RE2::PartialMatch(re2::StringPiece(words.data(), words.size()), pattern)) return each.cure;
  }
  return "";
}

}  // namespace stoker::diagnose
