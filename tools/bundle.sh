#!/bin/bash
# tools/bundle.sh [-o FILE.tar.xz] [--preset dev|release] [--warm SECONDS]: what tools/gpu_test.sh needs on a machine with a GPU and nothing else, in one file.
#
# From build/PRESET, which must be built (`cmake --build --preset PRESET`): the tool, libheddle, the plugins, the tests that can be held
# against a device, the shared libraries that these need and a bare Debian or Ubuntu may lack, and the probes, where nvcc is there to
# compile them. None of NVIDIA's libraries: those of the machine are used. All of it stripped, at most 60 MB packed. The default file is
# build/heddle_gpu.tar.xz.
#
# The list of operators that have changed since the last run on a GPU goes with it (tools/gpu/changed_operators.sh), and kernels that are
# compiled ahead for sm_90, as many as SECONDS allow (300; 0: none). They stay in build/PRESET/gpu_kernels: the next bundle goes on from
# there (tools/gpu/warm_kernels.sh). There:
#
#   tar -xf heddle_gpu.tar.xz && heddle_gpu/gpu_test.sh
set -euo pipefail
cd "$(dirname "$0")/.."

output=build/heddle_gpu.tar.xz
preset=dev
warm=300
max_bytes=60000000
while [ $# -gt 0 ]; do
  case $1 in
    -o) output=${2:?-o takes a file}; shift 2 ;;
    --preset) preset=${2:?--preset takes a name}; shift 2 ;;
    --warm) warm=${2:?--warm takes seconds}; shift 2 ;;
    --help) sed -n '2p' "$0" | cut -c3-; exit 0 ;;
    *) echo "unknown option $1" >&2; sed -n '2p' "$0" | cut -c3- >&2; exit 2 ;;
  esac
done
case $preset in
  dev | release) ;;
  *) echo "unknown preset $preset: dev or release" >&2; exit 2 ;;
esac
built=build/$preset

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/heddle_gpu
mkdir -p "$bundle"/{bin,gpu/kernels,lib/test,lib/shared,lib/heddle/plugins}

missing=()
take() { # FILE FOLDER: the built file, without its symbols.
  if [ ! -f "$built/$1" ]; then
    missing+=("$1")
    return
  fi
  strip --strip-unneeded -o "$bundle/$2/$(basename "$1")" "$built/$1"
}
for program in heddle heddle_conformance_tests heddle_device_tests; do take "bin/$program" bin; done
for plugin in cpu cuda sim; do
  take "lib/$plugin.so" lib
  ln -s "../../$plugin.so" "$bundle/lib/heddle/plugins/$plugin.so"
done
for plugin in bare host_only; do take "lib/test/$plugin.so" lib/test; done
take lib/libheddle.so lib
if [ ${#missing[@]} -gt 0 ]; then
  echo "bundle: not built in $built: ${missing[*]}" >&2
  [[ " ${missing[*]} " != *" lib/cuda.so "* ]] || echo "bundle: lib/cuda.so is built where the CUDA toolkit's headers are" >&2
  exit 1
fi
# What one GPU can say of NCCL, where the plugin is built.
[ ! -f "$built/bin/heddle_nccl_tests" ] || take bin/heddle_nccl_tests bin
if [ -f "$built/lib/nccl.so" ]; then
  take lib/nccl.so lib
  ln -s ../../nccl.so "$bundle/lib/heddle/plugins/nccl.so"
fi
soname=$(objdump -p "$bundle/lib/libheddle.so" | awk '$1 == "SONAME" { print $2 }')
[ "$soname" = libheddle.so ] || mv "$bundle/lib/libheddle.so" "$bundle/lib/$soname"

nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc || true)
if [ -n "$nvcc" ]; then
  for probe in gpu_facts gpu_capture; do
    "$nvcc" -O3 -std=c++17 -arch=all-major -cudart static "tools/gpu/$probe.cu" -lcublasLt -lcudnn -o "$bundle/bin/$probe"
    strip --strip-unneeded "$bundle/bin/$probe"
  done
else
  echo "bundle: no nvcc on this machine, the probes are left out"
fi
cp tools/gpu_test.sh "$bundle/"
cp tools/gpu/libraries.sh tools/gpu/parts_*.sh tools/gpu/*.py tools/gpu/last_run "$bundle/gpu/"
tools/gpu/changed_operators.sh >"$bundle/gpu/operators.changed"

if [ "$warm" -gt 0 ]; then
  touch "$work/begin"
  tools/gpu/warm_kernels.sh "$built" "$built/gpu_kernels" "$warm"
  # Those of older sources are not asked for, and stay here.
  find "$built/gpu_kernels" -name '*.cubin' -newer "$work/begin" -exec cp -t "$bundle/gpu/kernels" {} +
fi
rmdir --ignore-fail-on-non-empty "$bundle/gpu/kernels"

# All that is not part of the C library, or NVIDIA's.
needed=$(find "$bundle" -type f \( -path '*/bin/*' -o -name '*.so*' \) -exec ldd {} + |
  sed -nE 's/^\s+(\S+) => (.*)$/\1 \2/p' | sed -E 's/ \(0x[0-9a-f]+\)$//' | sort -u |
  grep -vE '^(lib(c|m|dl|rt|pthread)\.so|ld-linux|libcu[a-zA-Z]*\.so|libnv[a-zA-Z]*\.so|libnccl\.so)')
if grep 'not found' <<<"$needed" >&2; then
  echo "bundle: these libraries are not on this machine" >&2
  exit 1
fi
while read -r _ file; do cp -L "$file" "$bundle/lib/shared/"; done <<<"$needed"
find "$bundle/lib/shared" -type f -exec strip --strip-unneeded {} +

mkdir -p "$(dirname "$output")"
tar -C "$work" --owner=0 --group=0 -cf - heddle_gpu | xz -T0 -6 >"$output.part"
bytes=$(stat -c %s "$output.part")
(cd "$work" && find heddle_gpu -type f ! -path '*/kernels/*' -printf '%10s  %p\n' | sort -k2)
[ ! -d "$bundle/gpu/kernels" ] ||
  find "$bundle/gpu/kernels" -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%10d  heddle_gpu/gpu/kernels, %d kernels for sm_90\n", sum, NR }'
echo "bundle: $output, $bytes bytes of at most $max_bytes, $(du -sb "$bundle" | cut -f1) unpacked, commit $(git rev-parse --short HEAD)"
if [ "$bytes" -gt $max_bytes ]; then
  rm "$output.part"
  echo "bundle: too large, not written" >&2
  exit 1
fi
mv "$output.part" "$output"
