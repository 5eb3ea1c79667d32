#!/bin/bash
# tools/install_packages.sh [PACKAGE...]: installs what the build and the tests need from Debian, and PACKAGE... too. Nothing is fetched when
# everything is there. Root, or sudo, is needed only when something is missing.
set -euo pipefail

packages=(
  g++ cmake ninja-build make ccache pkg-config binutils                # building; make is what CMake takes for a plugin of `plugin new`
  libtbb-dev libboost-dev libfmt-dev libxxhash-dev                     # the runtime
  libflatbuffers-dev flatbuffers-compiler flatbuffers-compiler-dev     # net files
  nlohmann-json3-dev libcli11-dev libssl-dev libjpeg-dev libpng-dev    # the tool
  libonnx-dev libprotobuf-dev protobuf-compiler                        # the importer
  libdnnl-dev ocl-icd-opencl-dev                                       # the CPU plugin; find_package(dnnl) asks for OpenCL's loader
  libgloo-dev libhiredis-dev libpmix-dev                               # the gloo plugin: connections; Redis and PMIx, where processes meet
  libgtest-dev libonnx-testdata redis-server openmpi-bin               # the tests
  dpkg-dev file                                                        # cpack, which makes the .deb
  "$@"
)

missing=()
for package in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | cut -c1-2)" = ii ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all ${#packages[@]} are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "packages: missing ${missing[*]}; run this as root, or install sudo" >&2
    exit 2
  }
  as_root=(sudo)
fi
echo "packages: installing ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
