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

}  // namespace

std::span<const ExceptionCure> exception_cures() { return kExceptionCures; }

std::string_view cure_of_exception(std::string_view exception) {
  for (const ExceptionCure& each : kExceptionCures) {
    const RE2 pattern{std::string("^(?:\\w+\\.)*(?:") + std::string(each.pattern) + ")"};
    if (RE2::PartialMatch(re2::StringPiece(exception.data(), exception.size()), pattern)) return each.cure;
  }
  return "";
}

}  // namespace stoker::diagnose
