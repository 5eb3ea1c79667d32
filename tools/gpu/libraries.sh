# Sourced by tools/gpu_test.sh: finds NVIDIA's libraries in the usual places.
#
# cuda_folders MAJOR   prints the folders that hold one of them, best first, one a line
# cuda_libraries MAJOR FOLDER...   prints a line for each: name, version, file; or that it is not there
# shellcheck shell=bash disable=SC2154

# What LD_LIBRARY_PATH says, the toolkit's installer, pip's wheels (those of CUDA 13 share a folder), the distribution's packages.
library_candidates() {
  tr ':' '\n' <<<"${HEDDLE_CUDA_LIBRARIES:-}:${LD_LIBRARY_PATH:-}"
  printf '%s\n' /usr/local/cuda/lib64 /usr/local/cuda-*/lib64 /usr/local/cuda/targets/*/lib
  if command -v python3 >/dev/null; then
    python3 - <<'PYTHON'
import glob, os, sys
for path in sys.path:
    for folder in sorted(glob.glob(os.path.join(path, "nvidia", "cu[0-9]*", "lib")) + glob.glob(os.path.join(path, "nvidia", "*", "lib"))):
        print(folder)
PYTHON
  fi
  printf '%s\n' /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/local/lib
}

library_files() { # MAJOR: of the libraries that the plugin opens, and NCCL's.
  printf '%s\n' "libcudart.so.$1" "libnvrtc.so.$1" "libcublasLt.so.$1" libcudnn.so.9 libnccl.so.2
}

cuda_folders() {
  local folder file
  library_candidates | awk 'NF && !seen[$0]++' | while read -r folder; do
    for file in $(library_files "$1"); do
      if [ -e "$folder/$file" ]; then
        echo "$folder"
        break
      fi
    done
  done
}

# The library's own word, where there is Python to ask it; else the name of its file.
library_version() { # FILE
  local version=
  if command -v python3 >/dev/null; then
    version=$(python3 - "$1" 2>/dev/null <<'PYTHON'
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
name = sys.argv[1].rsplit("/", 1)[1].split(".")[0]
number, minor = ctypes.c_int(), ctypes.c_int()
if name == "libcudart":
    library.cudaRuntimeGetVersion(ctypes.byref(number))
    print(f"{number.value // 1000}.{number.value % 1000 // 10}")
elif name == "libnvrtc":
    library.nvrtcVersion(ctypes.byref(number), ctypes.byref(minor))
    print(f"{number.value}.{minor.value}")
elif name == "libnccl":
    library.ncclGetVersion(ctypes.byref(number))
    print(f"{number.value // 10000}.{number.value // 100 % 100}.{number.value % 100}")
else:
    ask = library.cublasLtGetVersion if name == "libcublasLt" else library.cudnnGetVersion
    ask.restype = ctypes.c_size_t
    n = ask()
    print(f"{n // 10000}.{n // 100 % 100}.{n % 100}")
PYTHON
    ) || version=
  fi
  if [ -z "$version" ]; then
    version=$(basename "$(readlink -f "$1")")
    version=${version#*.so.}
  fi
  echo "$version"
}

cuda_libraries() {
  local major=$1 file folder found
  shift
  for file in $(library_files "$major"); do
    found=
    for folder in "$@"; do
      if [ -e "$folder/$file" ]; then
        found=$folder/$file
        break
      fi
    done
    if [ -n "$found" ]; then
      printf '  %-19s %-9s %s\n' "$file" "$(library_version "$found")" "$found"
    else
      printf '  %-19s not found\n' "$file"
    fi
  done
}
