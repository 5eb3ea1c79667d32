# cmake -DBUILD=... -DPREFIX=... -P install.cmake: installs into an empty PREFIX and looks whether everything lies where users look for it.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" RESULT_VARIABLE status OUTPUT_VARIABLE output
                ERROR_VARIABLE output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "cmake --install failed (is everything built?):\n${output}")
endif()
foreach(pattern "include/heddle/op.h" "include/heddle/op/builder.h" "include/heddle/abi.h" "include/heddle/session.h" "include/heddle/training.h" "include/heddle/trainer.h" "lib*/libheddle.so.0"
                "lib*/heddle/plugins/cpu.so" "lib*/cmake/heddle/heddle-config.cmake" "lib*/cmake/heddle/heddle_plugin.map"
                "lib*/pkgconfig/heddle.pc" "lib*/pkgconfig/heddle-plugin.pc" "bin/heddle" "share/man/man1/heddle-run.1" "share/bash-completion/completions/heddle" "share/doc/heddle/command_line.md")
  file(GLOB found "${PREFIX}/${pattern}" "${PREFIX}/lib/*/${pattern}")
  if(NOT found)
    message(SEND_ERROR "the installation has no ${pattern}")
  endif()
endforeach()
# The package moves with its folder: no absolute path of this build or of the prefix stands in it.
file(GLOB_RECURSE texts "${PREFIX}/*.cmake" "${PREFIX}/*.pc")
foreach(file ${texts})
  file(READ "${file}" text)
  string(FIND "${text}" "${BUILD}" at)
  if(NOT at EQUAL -1)
    message(SEND_ERROR "${file} names ${BUILD}")
  endif()
endforeach()
