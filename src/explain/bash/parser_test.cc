#include "explain/bash/parser.h"

#include <gmock/gmock.h>

#include "base/text.h"

namespace stoker::explain::bash {
namespace {

std::string show(const List& list);

std::string show(const Word& word) {
  std::string text;
  for (const Piece& piece : word.pieces) {
    const std::string mark = piece.is_quoted ? "'" : "";
    if (piece.kind == PieceKind::literal) text += mark + piece.text + mark;
    if (piece.kind == PieceKind::variable) text += mark + "<" + piece.text + piece.operation + ">" + mark;
    if (piece.kind == PieceKind::command) text += mark + "$(" + show(piece.lists.at(0)) + ")" + mark;
    if (piece.kind == PieceKind::process) text += "p(" + show(piece.lists.at(0)) + ")";
    if (piece.kind == PieceKind::arithmetic) text += "[" + piece.text + "]";
  }
  return text;
}

std::string show(const Command& command) {
  std::vector<std::string> parts;
  for (const Assignment& each : command.assignments) {
    std::string elements;
    for (const Word& word : each.elements) elements += (elements.empty() ? "" : ",") + show(word);
    parts.push_back(each.name + (each.appends ? "+=" : "=") +
                    (each.is_array && each.value.pieces.empty() ? "(" + elements + ")" : show(each.value)));
  }
  if (!command.name.empty()) parts.push_back(command.name + ":");
  for (const Word& word : command.words) parts.push_back(show(word));
  for (const Redirection& each : command.redirections)
    parts.push_back(each.descriptor + each.operation + show(each.target));
  for (const List& list : command.parts) parts.push_back("{" + show(list) + "}");
  const char* names[] = {"", "group ", "sub ", "if ", "while ", "for ", "case ", "fn ", "test ", "(( "};
  return names[static_cast<int>(command.kind)] + join(parts, " ");
}

std::string show(const List& list) {
  std::string text;
  for (const Item& item : list.items) {
    std::vector<std::string> commands;
    for (const Command& command : item.pipeline.commands) commands.push_back(show(command));
    text += (item.pipeline.is_negated ? "! " : "") + join(commands, " | ");
    const char* ends[] = {"", "; ", " & ", " && ", " || "};
    text += ends[static_cast<int>(item.next)];
  }
  return text;
}

std::string read(std::string_view text) {
  const Script script = parse(text);
  return script.error ? format("{}: {}", script.error->at, script.error->what()) : show(script.list);
}

TEST(BashParser, words_keep_what_is_quoted_apart) {
  EXPECT_EQ(read("echo 'a b'c \"d $e\" f\\ g ${h:-i j} $1 $10 $@ \"\""),
            "echo 'a b'c 'd ''<e>' f' 'g <h:-i j> <1> <1>0 <@> ''");
  EXPECT_EQ(read("echo $'it\\'s' $\"x\" a$ ${#a} ${a[@]} ${10} ${!b}"),
            "echo 'it\\'s' 'x' a$ <a#> <a[@]> <10> <b!>");
  EXPECT_EQ(read("a \\\n  b # c\nd"), "a b; d");
  EXPECT_EQ(read("a#b #c"), "a#b");
}

TEST(BashParser, commands_in_words_are_read) {
  EXPECT_EQ(read("A=$(b | c) d `e f` <(g) \"$(h \"i\")\""), "A=$(b | c) d $(e f) p(g) '''$(h 'i')'");
  EXPECT_EQ(read("a $((1 + $b)) $((c); d) $[2*3]"), "a [1 + $b] $(sub {c}; d) [2*3]");
  EXPECT_EQ(read("a $[b[1] + c[d[2]]]"), "a [b[1] + c[d[2]]]");
  EXPECT_EQ(read("x=$(case $y in a) b;; esac)"), "x=$(case <y> a {b})");
}

TEST(BashParser, lists_know_what_connects_them) {
  EXPECT_EQ(read("a && b || c; d & e\nf | g |& h &\n! i"), "a && b || c; d & e; f | g | h & ! i");
  EXPECT_EQ(read("a |\n b &&\n\n c"), "a | b && c");
  EXPECT_EQ(read("time -p a; time b; ! time c"), "a; b; ! c");
}

TEST(BashParser, compound_commands_are_read) {
  EXPECT_EQ(read("if a; then b; elif c; then d; else e; fi > f"), "if >f {a; } {b; } {c; } {d; } {e; }");
  EXPECT_EQ(read("while read -r l; do a; done < f"), "while <f {read -r l; } {a; }");
  EXPECT_EQ(read("for i in 1 $x {1..3}; do a; done"), "for i: 1 <x> {1..3} {a; }");
  EXPECT_EQ(read("for i\ndo\na\ndone"), "for i: {a; }");
  EXPECT_EQ(read("for ((i=0; i<3; i++)); do a; done"), "for ((i=0; i<3; i++)) {a; }");
  EXPECT_EQ(read("case $1 in a|b) c;; (*) d; e ;;\nesac"), "case <1> a b * {c} {d; e}");
  EXPECT_EQ(read("(a; b) && { c; }"), "sub {a; b} && group {c; }");
  EXPECT_EQ(read("((i = (1 + 2) * 3))"), "(( [i = (1 + 2) * 3]");
  EXPECT_EQ(read("((a); b)"), "sub {sub {a}; b}");
  EXPECT_EQ(read("[[ $a == b* && ( -f c || ! -d d ) ]]"), "test <a> == b* -f c ! -d d");
  EXPECT_EQ(read("[[ $a =~ ^(b|c d)$ ]] || e"), "test <a> =~ ^(b|c d)$ || e");
  EXPECT_EQ(read("f() { a; }\nfunction g { b; }\nfunction h() (c)"),
            "fn f: {group {a; }}; fn g: {group {b; }}; fn h: {sub {c}}");
}

TEST(BashParser, assignments_and_redirections_are_told_from_words) {
  EXPECT_EQ(read("A=1 B=$c d E=2 2>&1 >f <<< $g"), "A=1 B=<c> d E=2 2>&1 >f <<<<g>");
  EXPECT_EQ(read("a=(b 'c d'\n e) f+=x g[1]=y"), "a=(b,'c d',e) f+=x g=y");
  EXPECT_EQ(read("export A=1 b; declare -a c=(d e)"), "A=1 export b; c=(d,e) declare -a");
  EXPECT_EQ(read("a &> b &>> c {fd}> d 3<&-"), "a &>b &>>c {fd}>d 3<&-");
  EXPECT_EQ(read("rm !(a|b) *.@(c|d)"), "rm !(a|b) *.@(c|d)");
}

TEST(BashParser, here_documents_are_taken_out_of_the_text) {
  const std::string_view text = "cat <<A; b <<-'C'\n$x #no\nA\n\t$(y)\n\tC\nd\n";
  const Script script = parse(text);
  ASSERT_FALSE(script.error) << script.error->what();
  EXPECT_EQ(show(script.list), "cat <<A; b <<-'C'; d; ");
  ASSERT_EQ(script.heredocs.size(), 2u);
  const auto body = [&](int n) {
    const Span span = script.heredocs[static_cast<std::size_t>(n)].body;
    return std::string(text.substr(span.begin, span.end - span.begin));
  };
  EXPECT_EQ(body(0), "$x #no\n");
  EXPECT_EQ(script.heredocs[0].pieces.at(0).text, "x");
  EXPECT_EQ(body(1), "\t$(y)\n");
  EXPECT_TRUE(script.heredocs[1].is_quoted);
  EXPECT_TRUE(script.heredocs[1].pieces.empty());
  EXPECT_TRUE(script.comments.empty());
  EXPECT_FALSE(parse("a <<B\nc\n").heredocs.at(0).is_closed);
}

TEST(BashParser, comments_and_places_are_kept) {
  const std::string_view text = "#!/bin/sh\na b # c\n";
  const Script script = parse(text);
  ASSERT_EQ(script.comments.size(), 2u);
  EXPECT_EQ(script.comments[1].span, (Span{14, 17}));
  const Command& command = script.list.items.at(0).pipeline.commands.at(0);
  EXPECT_EQ(command.span, (Span{10, 13}));
  EXPECT_EQ(command.words.at(1).span, (Span{12, 13}));
}

TEST(BashParser, what_is_wrong_is_told_with_its_place) {
  EXPECT_EQ(read("a\nif b; then c\n"), "2: 'if' without its 'fi'");
  EXPECT_EQ(read("a; fi"), "3: 'fi' does not belong here");
  EXPECT_EQ(read("for i in a; b; done"), "12: 'b' where 'do' should be");
  EXPECT_EQ(read("echo 'a"), "5: a ' is not closed");
  EXPECT_EQ(read("echo \"a"), "5: a \" is not closed");
  EXPECT_EQ(read("echo $(a"), "5: '$(' is not closed");
  EXPECT_EQ(read("echo ${a"), "5: '${' is not closed");
  EXPECT_EQ(read("a (b)"), "2: '(' does not belong here");
  EXPECT_EQ(read("a && "), "5: a command is missing behind && or ||");
  EXPECT_EQ(read("a >"), "2: nothing behind '>'");
  EXPECT_EQ(read("| a"), "0: '|' does not belong here");
  EXPECT_EQ(read("while a; do b"), "0: 'while' without its 'done'");
  EXPECT_EQ(read("a ;; b"), "2: ';' does not belong here");
  EXPECT_EQ(read(std::string(2000, '(')), "60: commands lie too deep in each other");
}

TEST(BashParser, what_came_before_a_mistake_is_kept) {
  const Script script = parse("a\nb\nif c\n");
  ASSERT_TRUE(script.error);
  EXPECT_EQ(show(script.list), "a; b; ");
}

TEST(BashParser, a_part_of_a_text_is_read_with_places_of_the_whole) {
  const std::string_view text = "bash -c 'cd /x && run'";
  const Script script = parse(text, {9, 21});
  EXPECT_EQ(show(script.list), "cd /x && run");
  EXPECT_EQ(script.list.items.at(1).pipeline.commands.at(0).span, (Span{18, 21}));
}

}  // namespace
}  // namespace stoker::explain::bash
