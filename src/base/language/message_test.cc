#include "base/language/message.h"

#include <gtest/gtest.h>

#include "base/language/translator.h"

namespace stoker {
namespace {

const Translator kIntoFrench(Language::french);

TEST(Message, arguments_are_formatted_when_the_message_is_rendered) {
  std::string name = "n1";
  const Message text = message("rank {} ({}): {:.1f} s", 3, name, 2.25);
  name = "changed";
  EXPECT_EQ(text, "rank 3 (n1): 2.2 s");
}

TEST(Message, nested_messages_are_translated_with_the_outer_one) {
  const Message text = message("try: {}", message("no"));
  EXPECT_EQ(text, "try: no");
  EXPECT_EQ(kIntoFrench.render(text), "à essayer : non");
}

TEST(Message, plain_texts_are_not_translated) {
  EXPECT_EQ(kIntoFrench.render("no"), "no");
  EXPECT_EQ(kIntoFrench.render(std::string("{}")), "{}");
  EXPECT_TRUE(Message().empty());
}

TEST(Message, appended_messages_are_translated) {
  Message text;
  text += "a, ";
  text += message("no");
  EXPECT_EQ(text, "a, no");
  EXPECT_EQ(kIntoFrench.render(text), "a, non");
}

TEST(Message, a_formatter_defines_its_own_placeholders) {
  const auto first_only = [](std::string_view pattern, std::span<const FormatArg> arguments) {
    return std::string(pattern) + std::string(std::get<std::string_view>(arguments[0].value()));
  };
  EXPECT_EQ(Message::of(first_only, "{1}", "a", "b"), "{1}a");
}

}  // namespace
}  // namespace stoker
