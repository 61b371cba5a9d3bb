# cmake -DTEXT=FILE -DSOURCE=FILE.cc -DNAME=FUNCTION -DNAMESPACE=NAMESPACE -DHEADER=HEADER -P embed.cmake: creates a source with the
# text verbatim, for a program that must run without installed files. The header declares the function.
file(READ ${TEXT} text)
file(WRITE ${SOURCE} "#include \"${HEADER}\"\n
namespace ${NAMESPACE} {
std::string_view ${NAME}() {
  static constexpr char kText[] = R\"po(${text})po\";
  return {kText, sizeof kText - 1};
}
}  // namespace ${NAMESPACE}\n")
