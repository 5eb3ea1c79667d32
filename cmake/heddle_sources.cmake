# heddle_sources(TARGET FILE...): adds FILEs, relative to the calling folder, to TARGET, eight of a folder to a compilation (CMake's unity
# build): two thirds of what a file costs alone is the headers of libraries, which the files of one folder share; what lies in folders below
# it counts as its own. Eight consecutive files of a folder make one unit, so a list that grows at its end moves no file from one unit to
# another. `-DCMAKE_UNITY_BUILD=OFF` compiles each file by itself: that is how clang-tidy sees them, and what proves that a file includes
# what it uses.
set(CMAKE_UNITY_BUILD ON CACHE BOOL "Compile several files at once")
set(HEDDLE_UNITY_FILES 8)

function(heddle_sources target)
  target_sources(${target} PRIVATE ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  foreach(file ${ARGN})
    get_filename_component(path "${file}" ABSOLUTE)
    file(RELATIVE_PATH path "${CMAKE_CURRENT_SOURCE_DIR}" "${path}")
    string(REGEX MATCH "^[^/]+/" folder "${path}")
    file(RELATIVE_PATH calling "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
    if(calling MATCHES "^runtime/")  # its folders are small, and their names are apart
      set(folder "")
    endif()
    string(REGEX REPLACE "[/.]+" "_" folder "${calling}/${folder}")
    if(NOT DEFINED files_of_${folder})
      set(files_of_${folder} 0)
    endif()
    math(EXPR unit "${files_of_${folder}} / ${HEDDLE_UNITY_FILES}")
    set_source_files_properties("${file}" TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP "${folder}_${unit}")
    math(EXPR files_of_${folder} "${files_of_${folder}} + 1")
  endforeach()
endfunction()
