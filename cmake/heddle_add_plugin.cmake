# heddle_add_plugin(NAME FILE...): a plugin NAME.so from FILE...; the same function in this tree and from an installed package.
#
# It exports heddle_plugin_query and nothing else: hidden visibility keeps its own symbols in, the version script keeps the standard
# library's templates in (a GNU-unique symbol would keep the library from ever being unloaded). Operators name the file that declares them
# (heddle_operator::file) by its path in the project.
set(HEDDLE_PLUGIN_VERSION_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/heddle_plugin.map")

function(heddle_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE heddle::plugin_api)
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so" POSITION_INDEPENDENT_CODE ON
                                           C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                                           VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS "${HEDDLE_PLUGIN_VERSION_SCRIPT}")
  target_link_options(${name} PRIVATE "LINKER:--version-script=${HEDDLE_PLUGIN_VERSION_SCRIPT}")
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>
                                         $<$<COMPILE_LANG_AND_ID:CXX,GNU,Clang>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)
endfunction()
