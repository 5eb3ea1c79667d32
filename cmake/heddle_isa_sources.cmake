# heddle_isa_sources(TARGET FILE...): compiles every FILE three times, for x86-64-v2, -v3 (AVX2, FMA) and -v4 (AVX-512), and links all
# into TARGET. Each compilation gets HEDDLE_ISA=v2|v3|v4, the namespace into which the file puts everything (plugins/cpu/isa.h says how
# the program then chooses). Such a file includes no header with inline functions of external linkage: the linker keeps one copy of
# those, and it might be the AVX-512 one.
#
# Floating point: no contraction behind our back (files write fused multiply-adds where they want them), so that vector bodies and
# remainders round alike; no errno and no traps, so that comparisons and square roots become vector instructions. Integers wrap.
function(heddle_isa_sources target)
  foreach(level v2 v3 v4)
    set(objects "${target}_${level}")
    if(NOT TARGET ${objects})
      add_library(${objects} OBJECT)
      target_link_libraries(${objects} PRIVATE heddle_plugin_api heddle_options)
      target_include_directories(${objects} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
      target_compile_definitions(${objects} PRIVATE HEDDLE_ISA=${level})
      target_compile_options(${objects} PRIVATE -march=x86-64-${level} -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv)
      if(level STREQUAL "v4")
        target_compile_options(${objects} PRIVATE -mprefer-vector-width=512)
      endif()
      set_target_properties(${objects} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON UNITY_BUILD OFF)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${objects}>)
    endif()
    target_sources(${objects} PRIVATE ${ARGN})
  endforeach()
endfunction()
