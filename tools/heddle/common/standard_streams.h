// Streams on the command line: "-", and files that are pipes or devices, such as /dev/stdin and what a shell's <(...) names. A stream is
// read once and kept, so that a command may look at it as often as at a file. Not synchronised: for the thread that reads the command line.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "heddle/status.h"

namespace heddle::tool {

// Returns whether the argument that is read names no file that stays: "-", or a pipe or socket. Other devices have no end.
bool is_stream(const std::string& file);

// Returns all bytes of a stream until its end. Errors: file_unreadable (it can't be read, is a terminal, or a pipe whose writer has not
// come within half a second); limit_exceeded (more than `limit_bytes`, the limit of that name).
Result<std::span<const std::byte>> stream_bytes(const std::string& file, int64_t limit_bytes, const char* limit_name);

// Returns the argument where its name says what kind of tensor or picture it holds: .npy, .pb, .safetensors[:TENSOR], .csv[:COLUMNS], .jpg,
// .png. Else, for a stream or a file without such a name, returns the name of a copy that has it, by content. Errors: those of
// stream_bytes and of reading a file; invalid_argument (the content is of no kind that is known).
Result<std::string> named_by_content(const std::string& argument, int64_t limit_bytes);

// Writes what a command makes, one part after the other: a file is replaced as a whole, a stream receives the bytes; "-" is standard
// output. Errors: file_unwritable; none where standard output is a pipe that its reader has closed: has_lost_reader() tells then, as `head`
// has had enough.
Status write_output(const std::string& file, std::initializer_list<std::span<const std::byte>> parts);
Status write_output(const std::string& file, std::string_view text);

// Returns whether the argument that is written is a stream: standard output, a pipe or a device.
bool takes_bytes_as_they_come(const std::string& file);

// Returns whether an output goes to standard output, where then nothing else may.
bool is_standard_output(const std::string& file);
bool has_lost_reader();

}  // namespace heddle::tool
