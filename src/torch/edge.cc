#include "torch/edge.h"

namespace stoker::torch {

std::string brief(const std::exception& error) {
  // "[enforce fail at file.cc:12] what" and "[file.cc:12] what" are how gloo and c10 begin.
  std::string_view text = error.what();
  text = text.substr(0, text.find('\n'));
  if (text.starts_with('[')) {
    const std::size_t end = text.find("] ");
    if (end != std::string_view::npos && text.substr(0, end).find(".cc:") != std::string_view::npos) {
      text.remove_prefix(end + 2);
    }
  }
  // gloo's advice, which is none here: we name the rank.
  text = text.substr(0, text.find(". This is typically caused by"));
  return printable(trim(text));
}

}  // namespace stoker::torch
