#include "base/language/message.h"

#include <ostream>

#include "base/language/translator.h"

namespace stoker {

void Message::clip(std::size_t most) {
  most_ = most;
  if (formatter_ == nullptr) pattern_ = clipped(std::move(pattern_), most);
  for (Argument& argument : arguments_) {
    if (auto* text = std::get_if<std::string>(&argument.value)) *text = clipped(std::move(*text), most);
    for (Message& nested : argument.message) nested.clip(most);
  }
}

std::string Message::english() const { return Translator().render(*this); }

Message& Message::operator+=(Message next) {
  if (empty()) return *this = std::move(next);
  if (!next.empty()) *this = message("{}{}", *this, next);
  return *this;
}

std::ostream& operator<<(std::ostream& out, const Message& message) { return out << message.english(); }

}  // namespace stoker
