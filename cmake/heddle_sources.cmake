# heddle_sources(TARGET FILE...): adds FILEs of the calling folder to TARGET, eight to a compilation (CMake's unity build): two thirds of
# what a file costs alone is the standard library's headers, which the files of one folder share. Eight consecutive files of a list make
# one unit, so a list that grows at its end moves no file from one unit to another. `-DCMAKE_UNITY_BUILD=OFF` compiles each file by itself:
# that is how clang-tidy sees them, and what proves that a file includes what it uses.
set(CMAKE_UNITY_BUILD ON CACHE BOOL "Compile several files at once")
set(HEDDLE_UNITY_FILES 8)

function(heddle_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  string(REPLACE "/" "_" folder "${folder}")
  set(index 0)
  foreach(file ${ARGN})
    math(EXPR unit "${index} / ${HEDDLE_UNITY_FILES}")
    set_source_files_properties("${file}" TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP "${folder}_${unit}")
    math(EXPR index "${index} + 1")
  endforeach()
endfunction()
