#include "diagnose/exception_chain.h"

#include <algorithm>

#include <re2/re2.h>

#include "diagnose/causal_link.h"
#include "diagnose/matches.h"

namespace stoker::diagnose {
namespace {

// From an exception to the traceback of the one that was raised from it.
constexpr std::uint64_t kNextInChain = 8;
// The same from the line that reported the reason of the first one.
constexpr std::uint64_t kNextTraceback = 80;
// A message of this number of words states something, also without a name.
constexpr std::ptrdiff_t kSomeWords = 5;

// "RuntimeError: dataset setup failed": what failed, without a reason.
bool is_wrapper(std::string_view message) {
  static const RE2 kWrapper(
      R"((?i)\b(?:fail(?:s|ed|ing)?|failure|crash(?:ed)?|abort(?:ed|ing)?|gave up|giving up|went wrong|could not be \w+|caused by|see (?:above|below)|(?:error|exception|problem|issue)s? (?:while|during|in|when|at|occurred|encountered|raised|executing|running|processing|loading))\b)");
  return matches(message, kWrapper);
}

bool states_own_reason(const Hit& hit) {
  const std::size_t colon = hit.text.find(": ");
  if (colon == std::string::npos) return false;
  const std::string_view message = std::string_view(hit.text).substr(colon + 2);
  if (is_wrapper(message)) return false;
  return names_a_subject(message) || std::count(message.begin(), message.end(), ' ') + 1 >= kSomeWords;
}

// Errors of data or of the program, which a program handles and reports in its own words.
bool may_be_handled(std::string_view exception) {
  static const RE2 kOfData(
      R"(^(?:\w+\.)*(?:Key|Value|Unicode\w*|Unpickling|Pickling|JSONDecode|TOMLDecode|Attribute|Type|Index|Lookup|EOF|Name|Assertion|ZeroDivision|Parser|Scanner|Safetensor|StopIteration|Overflow|binascii\.)\w*(?:Error)?\b)");
  return matches(exception, kOfData);
}

// Whether the outer exception is an error in the code that handled the inner one: a None or an unknown name
// in `except` or `finally`. After a failed look-up such code may have tried something else.
bool breaks_in_handler(const Hit& inner, const Hit& outer) {
  static const RE2 kBroken(
      R"(^(?:AttributeError: '\w+' object has no attribute|AttributeError: 'NoneType'|TypeError: 'NoneType'|TypeError: .*(?:positional argument|unexpected keyword)|NameError\b|UnboundLocalError\b))");
  static const RE2 kLookUp(
      R"(^(?:\w+\.)*(?:Key|Index|Attribute|Import|ModuleNotFound|Lookup|Name|Type)Error\b|^StopIteration\b)");
  return outer.is_in_handler && outer.rank == inner.rank && matches(outer.text, kBroken) &&
         !matches(inner.text, kLookUp);
}

// Whether the outer exception is the timeout that cancelled the inner one.
bool is_timeout_of(const Hit& inner, const Hit& outer) {
  static const RE2 kCancelled(R"(^(?:\w+\.)*CancelledError\b)");
  static const RE2 kTimeout(R"(^(?:\w+\.)*TimeoutError\b)");
  return matches(inner.text, kCancelled) && matches(outer.text, kTimeout);
}

// Whether the outer exception of two states more of the reason.
bool states_more(const Hit& inner, const Hit& outer) {
  if (is_timeout_of(inner, outer)) return true;
  const bool is_inner_general = inner.rule->failure_class == FailureClass::general;
  if (is_inner_general && inner.frame.empty() && !outer.frame.empty() && is_program_error(outer.text))
    return true;
  if (outer.rule == inner.rule && !is_inner_general) return false;
  if (!states_own_reason(outer)) return false;
  if (is_inner_general) return true;
  return may_be_handled(inner.text) && !share_a_subject(inner.text, outer.text);
}

}  // namespace

Suspect stated_in_chain(const Suspect& cause, const std::vector<Suspect>& end) {
  if (cause.log->is_record) return cause;
  Suspect stated = cause;
  std::uint64_t until = cause.hit->line;
  for (const Suspect& each : end) {
    const bool is_next = each.log == cause.log && each.rank() == cause.rank() && each.hit->is_chained &&
                         each.hit->begin > until && each.hit->begin <= until + kNextInChain;
    if (!is_next) continue;
    until = each.hit->line;
    if (breaks_in_handler(*stated.hit, *each.hit)) continue;
    if (states_more(*stated.hit, *each.hit)) stated = each;
  }
  return stated;
}

std::optional<Suspect> error_of_handler(const Suspect& cause, const std::vector<Suspect>& end) {
  for (const Suspect& each : end) {
    const bool is_next = each.log == cause.log && each.hit->begin > cause.hit->line &&
                         each.hit->begin <= cause.hit->line + kNextTraceback;
    if (is_next && breaks_in_handler(*cause.hit, *each.hit)) return each;
  }
  return std::nullopt;
}

}  // namespace stoker::diagnose
