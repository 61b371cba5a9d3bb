# Writes the source with stoker::commit(), if it differs: cmake -DCOMMIT= -DSOURCES=<folder> -DSOURCE=<file> -P commit.cmake
# The commit is COMMIT if it is set, else the checkout's (with -dirty for uncommitted changes), else the one that `git archive`
# wrote to cmake/commit.txt, else empty. A .git of a folder above is a different project's.
if(NOT COMMIT AND EXISTS ${SOURCES}/.git)
  execute_process(COMMAND git -C ${SOURCES} describe --always --dirty --abbrev=12 --exclude=*
                  OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed)
    set(COMMIT "")
  endif()
elseif(NOT COMMIT)
  file(STRINGS ${SOURCES}/cmake/commit.txt COMMIT LIMIT_COUNT 1)
  string(SUBSTRING "${COMMIT}" 0 12 COMMIT)
endif()
if(NOT COMMIT MATCHES "^[0-9A-Za-z][-+._0-9A-Za-z]*$")  # in a checkout, commit.txt has git's placeholder
  set(COMMIT "")
endif()
set(text "#include <string_view>\n\nnamespace stoker {\n\nstd::string_view commit();\n\n")
string(APPEND text "std::string_view commit() { return \"${COMMIT}\"; }\n\n}  // namespace stoker\n")
set(existing "")
if(EXISTS ${SOURCE})
  file(READ ${SOURCE} existing)
endif()
if(NOT existing STREQUAL text)
  file(WRITE ${SOURCE} "${text}")
endif()
