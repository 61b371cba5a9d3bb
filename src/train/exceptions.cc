#include "stoker/exceptions.h"

namespace stoker::train {

std::string first_line(const std::exception& error) {
  // gloo and c10 prefix messages with "[enforce fail at file.cc:12] " and "[file.cc:12] ".
  std::string_view text = error.what();
  // A model of torch.jit begins with its traceback; the error itself follows.
  constexpr std::string_view kScriptError = "\nRuntimeError: ";
  const std::size_t in_script = text.rfind(kScriptError);
  if (text.starts_with("The following operation failed in the TorchScript interpreter") &&
      in_script != std::string_view::npos)
    text.remove_prefix(in_script + kScriptError.size());
  text = text.substr(0, text.find('\n'));
  if (text.starts_with('[')) {
    const std::size_t end = text.find("] ");
    if (end != std::string_view::npos && text.substr(0, end).find(".cc:") != std::string_view::npos) {
      text.remove_prefix(end + 2);
    }
  }
  // Drop gloo's generic advice: our errors name the rank.
  text = text.substr(0, text.find(". This is typically caused by"));
  return printable(trim(text));
}

}  // namespace stoker::train
