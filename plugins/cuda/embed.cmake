# cmake -DOUTPUT=FILE -DTEXTS=FILE;... -P embed.cmake: one C++ file that gives each text by its name (generate/texts.h).
set(code "#include \"generate/texts.h\"\n\nnamespace heddle::cuda {\n\nconst std::map<std::string_view, std::string_view>& texts() {\n  static const std::map<std::string_view, std::string_view> all = {\n")
foreach(text ${TEXTS})
  get_filename_component(name "${text}" NAME_WE)
  file(READ "${text}" content)
  # A literal may not be longer than 64 KiB.
  string(APPEND code "    {\"${name}\", R\"heddle(${content})heddle\"},\n")
endforeach()
string(APPEND code "  };\n  return all;\n}\n\n}  // namespace heddle::cuda\n")
file(WRITE "${OUTPUT}" "${code}")
