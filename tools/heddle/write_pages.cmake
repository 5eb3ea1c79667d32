# Writes what the tool says of itself into FOLDER: manual pages and the completions of shells, as they are installed. Where it is built with
# AddressSanitizer, leaks of its libraries are no fault of the pages.
set(heddle "${CMAKE_COMMAND}" -E env ASAN_OPTIONS=detect_leaks=0 "${HEDDLE}")
foreach(shell bash zsh fish)
  string(REPLACE "SHELL" "${shell}" name "completion.SHELL")
  execute_process(COMMAND ${heddle} completion ${shell} OUTPUT_FILE "${FOLDER}/${name}" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND ${heddle} manual OUTPUT_FILE "${FOLDER}/heddle.1" COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS "${FOLDER}/heddle.1" commands REGEX "^\\.It Cm ")
foreach(line ${commands})
  string(REGEX REPLACE "^\\.It Cm " "" command "${line}")
  string(REPLACE "\\-" "-" command "${command}")
  execute_process(COMMAND ${heddle} manual ${command} OUTPUT_FILE "${FOLDER}/heddle-${command}.1" COMMAND_ERROR_IS_FATAL ANY)
endforeach()
