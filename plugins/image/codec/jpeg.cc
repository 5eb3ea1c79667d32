#include "codec/jpeg.h"

#include <csetjmp>
#include <cstdio>
#include <string>

// jpeglib.h needs FILE and size_t to be declared.
#include <jerror.h>
#include <jpeglib.h>

#include "codec/exif_orientation.h"
#include "pixels/luma.h"

namespace heddle::pictures {
namespace {

constexpr int max_scans = 500;  // of a progressive picture: each takes as long as a whole decode

struct Failure {
  jpeg_error_mgr manager;  // first: libjpeg knows its address
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
  bool is_of_memory;
};

[[noreturn]] void fail(j_common_ptr info) {
  auto* const failure = reinterpret_cast<Failure*>(info->err);
  info->err->format_message(info, failure->text);
  failure->is_of_memory = info->err->msg_code == JERR_OUT_OF_MEMORY;
  std::longjmp(failure->back, 1);
}

// Warnings of damaged or missing data are errors here: libjpeg would fill the rest of the picture with grey.
void take_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_TOO_MUCH_DATA:
    case JWRN_BOGUS_PROGRESSION:
      return;
    default:
      fail(info);
  }
}

// Fails for a reason that libjpeg does not have.
[[noreturn]] void refuse(j_common_ptr info, const char* why) {
  auto* const failure = reinterpret_cast<Failure*>(info->err);
  std::snprintf(failure->text, JMSG_LENGTH_MAX, "%s", why);
  std::longjmp(failure->back, 1);
}

void count_scans(j_common_ptr info) {
  if (info->is_decompressor && reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > max_scans)
    refuse(info, "it has too many scans");
}

// libjpeg gives a channel that is in no scan a uniform value. The first scan of a channel sets its table.
void check_scans(jpeg_decompress_struct& jpeg) {
  for (int c = 0; c < jpeg.num_components; ++c)
    if (!jpeg.comp_info[c].quant_table) refuse(reinterpret_cast<j_common_ptr>(&jpeg), "a channel is in none of its scans");
}

void begin(jpeg_decompress_struct& jpeg, Failure& failure, jpeg_progress_mgr& progress, const EncodedPicture& picture) {
  jpeg_create_decompress(&jpeg);
  progress.progress_monitor = count_scans;
  jpeg.progress = &progress;
  failure.text[0] = '\0';
  failure.is_of_memory = false;
  jpeg_mem_src(&jpeg, picture.data, picture.size);
}

void take_errors(jpeg_decompress_struct& jpeg, Failure& failure) {
  jpeg.err = jpeg_std_error(&failure.manager);
  failure.manager.error_exit = fail;
  failure.manager.emit_message = take_message;
}

// libjpeg reports an error by a jump: no object with a destructor may live between it and setjmp.
bool read(const EncodedPicture& picture, PictureHeader* header, Failure& failure) {
  jpeg_decompress_struct jpeg = {};
  jpeg_progress_mgr progress = {};
  take_errors(jpeg, failure);
  if (setjmp(failure.back)) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  begin(jpeg, failure, progress, picture);
  jpeg_save_markers(&jpeg, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&jpeg, TRUE);
  header->height = jpeg.image_height;
  header->width = jpeg.image_width;
  // Its files may be of any size for any picture.
  if (jpeg.arith_code) refuse(reinterpret_cast<j_common_ptr>(&jpeg), "it is coded arithmetically, and Huffman codes are read");
  // Takes the first marker that is EXIF's: others of this kind hold texts about the picture.
  const jpeg_marker_struct* marker = jpeg.marker_list;
  while (marker && !has_exif(marker->data, marker->data_length)) marker = marker->next;
  if (marker) header->orientation = exif_orientation(marker->data + exif_identifier, marker->data_length - exif_identifier);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

// Inks as Adobe's programs store them, where 255 is no ink.
void convert_inks(const uint8_t* inks, int64_t width, PixelFormat format, uint8_t* to) {
  for (int64_t x = 0; x < width; ++x, inks += 4) {
    int channel[3];
    for (int c = 0; c < 3; ++c) channel[c] = (inks[c] * inks[3] + 127) / 255;
    if (format == PixelFormat::grayscale) {
      *to++ = static_cast<uint8_t>(luma(channel[0], channel[1], channel[2]));
      continue;
    }
    for (int c = 0; c < 3; ++c) *to++ = static_cast<uint8_t>(channel[format == PixelFormat::bgr ? 2 - c : c]);
  }
}

bool write(const EncodedPicture& picture, const PictureHeader& header, PixelFormat format, uint8_t* pixels, Failure& failure) {
  jpeg_decompress_struct jpeg = {};
  jpeg_progress_mgr progress = {};
  take_errors(jpeg, failure);
  if (setjmp(failure.back)) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  begin(jpeg, failure, progress, picture);
  jpeg_read_header(&jpeg, TRUE);
  const bool has_inks = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = has_inks                           ? JCS_CMYK
                         : format == PixelFormat::grayscale ? JCS_GRAYSCALE
                         : format == PixelFormat::bgr       ? JCS_EXT_BGR
                                                            : JCS_RGB;
  // The memory was made for what the header said when it was first read.
  const int64_t stored_width = header.stored_width(), stored_height = header.stored_height();
  jpeg_start_decompress(&jpeg);
  if (jpeg.output_width != stored_width || jpeg.output_height != stored_height) ERREXIT(&jpeg, JERR_BAD_LENGTH);
  const int64_t row_bytes = stored_width * channels_of(format);
  JSAMPARRAY inks = nullptr;  // a row of them; libjpeg's memory
  if (has_inks)
    inks = (*jpeg.mem->alloc_sarray)(reinterpret_cast<j_common_ptr>(&jpeg), JPOOL_IMAGE, jpeg.output_width * JDIMENSION{4}, JDIMENSION{1});
  while (jpeg.output_scanline < jpeg.output_height) {
    uint8_t* const to = pixels + int64_t{jpeg.output_scanline} * row_bytes;
    JSAMPROW row = has_inks ? inks[0] : to;
    jpeg_read_scanlines(&jpeg, &row, 1);
    if (has_inks) convert_inks(row, stored_width, format, to);
  }
  check_scans(jpeg);  // before libjpeg forgets them
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return true;
}

Status damaged(const Failure& failure) {
  if (failure.is_of_memory) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory to decode a JPEG picture"};
  return plugin::invalid(std::string("the JPEG picture is damaged: ") + failure.text);
}

}  // namespace

Status read_jpeg_header(const EncodedPicture& picture, PictureHeader* header) {
  Failure failure;
  if (!read(picture, header, failure)) return damaged(failure);
  // Huffman codes have a bit or more for each block of 8 x 8 values.
  header->min_bytes = header->height * header->width / 64 / 8;
  return {};
}

Status decode_jpeg(const EncodedPicture& picture, const PictureHeader& header, PixelFormat format, uint8_t* pixels) {
  Failure failure;
  return write(picture, header, format, pixels, failure) ? Status() : damaged(failure);
}

}  // namespace heddle::pictures
