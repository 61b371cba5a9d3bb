#include "stoker/exceptions.h"

namespace stoker::train {

std::string first_line(const std::exception& error) {
  // gloo and c10 prefix messages with "[enforce fail at file.cc:12] " and "[file.cc:12] ".
  std::string_view text = error.what();
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
