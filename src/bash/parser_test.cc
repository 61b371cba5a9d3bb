#include "bash/parser.h"

#include <gmock/gmock.h>

#include "stoker/text.h"

namespace stoker::bash {
namespace {

std::string show(const List& list);

std::string show(const Word& word) {
  std::string text;
  for (const WordPiece& piece : word.pieces) {
    const std::string mark = piece.is_quoted ? "'" : "";
    if (piece.kind == PieceKind::literal) text += mark + piece.text + mark;
    if (piece.kind == PieceKind::variable) text += mark + "<" + piece.text + piece.operation + ">" + mark;
    if (piece.kind == PieceKind::command) text += mark + "$(" + show(piece.lists.at(0)) + ")" + mark;
    if (piece.kind == PieceKind::process) text += "p(" + show(piece.lists.at(0)) + ")";
    if (piece.kind == PieceKind::arithmetic) text += "[" + piece.text + "]";
  }
  return text;
}

std::string show(const ShellCommand& command) {
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
    for (const ShellCommand& command : item.pipeline.commands) commands.push_back(show(command));
    text += (item.pipeline.is_negated ? "! " : "") + join(commands, " | ");
    const char* ends[] = {"", "; ", " & ", " && ", " || "};
    text += ends[static_cast<int>(item.next)];
  }
  return text;
}

std::string read(std::string_view text) {
  const SyntaxTree tree = parse(text);
  return tree.error ? format("{}: {}", tree.error->at, tree.error->what().english()) : show(tree.list);
}

TEST(BashParser, quoted_parts_of_words_are_separate) {
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

TEST(BashParser, lists_keep_their_connectors) {
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

TEST(BashParser, assignments_and_redirections_are_distinguished_from_words) {
  EXPECT_EQ(read("A=1 B=$c d E=2 2>&1 >f <<< $g"), "A=1 B=<c> d E=2 2>&1 >f <<<<g>");
  EXPECT_EQ(read("a=(b 'c d'\n e) f+=x g[1]=y"), "a=(b,'c d',e) f+=x g=y");
  EXPECT_EQ(read("export A=1 b; declare -a c=(d e)"), "A=1 export b; c=(d,e) declare -a");
  EXPECT_EQ(read("a &> b &>> c {fd}> d 3<&-"), "a &>b &>>c {fd}>d 3<&-");
  EXPECT_EQ(read("rm !(a|b) *.@(c|d)"), "rm !(a|b) *.@(c|d)");
}

TEST(BashParser, here_documents_are_removed_from_the_text) {
  const std::string_view text = "cat <<A; b <<-'C'\n$x #no\nA\n\t$(y)\n\tC\nd\n";
  const SyntaxTree tree = parse(text);
  ASSERT_FALSE(tree.error) << tree.error->what().english();
  EXPECT_EQ(show(tree.list), "cat <<A; b <<-'C'; d; ");
  ASSERT_EQ(tree.heredocs.size(), 2u);
  const auto body = [&](int n) {
    const Span span = tree.heredocs[static_cast<std::size_t>(n)].body;
    return std::string(text.substr(span.begin, span.end - span.begin));
  };
  EXPECT_EQ(body(0), "$x #no\n");
  EXPECT_EQ(tree.heredocs[0].pieces.at(0).text, "x");
  EXPECT_EQ(body(1), "\t$(y)\n");
  EXPECT_TRUE(tree.heredocs[1].is_quoted);
  EXPECT_TRUE(tree.heredocs[1].pieces.empty());
  EXPECT_TRUE(tree.comments.empty());
  EXPECT_FALSE(parse("a <<B\nc\n").heredocs.at(0).is_closed);
}

TEST(BashParser, comments_and_positions_are_kept) {
  const std::string_view text = "#!/bin/sh\na b # c\n";
  const SyntaxTree tree = parse(text);
  ASSERT_EQ(tree.comments.size(), 2u);
  EXPECT_EQ(tree.comments[1].span, (Span{14, 17}));
  const ShellCommand& command = tree.list.items.at(0).pipeline.commands.at(0);
  EXPECT_EQ(command.span, (Span{10, 13}));
  EXPECT_EQ(command.words.at(1).span, (Span{12, 13}));
}

TEST(BashParser, syntax_errors_are_reported_with_their_position) {
  EXPECT_EQ(read("a\nif b; then c\n"), "2: 'if' without 'fi'");
  EXPECT_EQ(read("a; fi"), "3: unexpected 'fi'");
  EXPECT_EQ(read("for i in a; b; done"), "12: 'b' where 'do' is expected");
  EXPECT_EQ(read("echo 'a"), "5: a ' is not closed");
  EXPECT_EQ(read("echo \"a"), "5: a \" is not closed");
  EXPECT_EQ(read("echo $(a"), "5: '$(' is not closed");
  EXPECT_EQ(read("echo ${a"), "5: '${' is not closed");
  EXPECT_EQ(read("a (b)"), "2: unexpected '('");
  EXPECT_EQ(read("a && "), "5: a command is missing after && or ||");
  EXPECT_EQ(read("a >"), "2: nothing after '>'");
  EXPECT_EQ(read("| a"), "0: unexpected '|'");
  EXPECT_EQ(read("while a; do b"), "0: 'while' without 'done'");
  EXPECT_EQ(read("a ;; b"), "2: unexpected ';'");
  EXPECT_EQ(read(std::string(2000, '(')), "60: commands are nested too deeply");
}

TEST(BashParser, commands_before_a_syntax_error_are_kept) {
  const SyntaxTree tree = parse("a\nb\nif c\n");
  ASSERT_TRUE(tree.error);
  EXPECT_EQ(show(tree.list), "a; b; ");
}

TEST(BashParser, positions_in_a_part_refer_to_the_whole_text) {
  const std::string_view text = "bash -c 'cd /x && run'";
  const SyntaxTree tree = parse(text, {9, 21});
  EXPECT_EQ(show(tree.list), "cd /x && run");
  EXPECT_EQ(tree.list.items.at(1).pipeline.commands.at(0).span, (Span{18, 21}));
}

}  // namespace
}  // namespace stoker::bash
