# cmake -DTEXT=FILE -DSOURCE=FILE.cc -DNAME=FUNCTION -P embed.cmake: creates a source with the text verbatim, for a program that
# must run without installed files.
file(READ ${TEXT} text)
file(WRITE ${SOURCE} "#include \"base/language/catalogue.h\"\n
namespace stoker {
std::string_view ${NAME}() {
  static constexpr char kText[] = R\"po(${text})po\";
  return {kText, sizeof kText - 1};
}
}  // namespace stoker\n")
