#!/bin/bash
# debian_package.sh PREFIX WORK COMPILER BUILD: cpack makes a .deb whose tool runs a net once it is unpacked, and which names what it needs.
set -euo pipefail
work=$2 build=$4
rm -rf "$work" && mkdir -p "$work"
(cd "$build" && cpack -B "$work/packages" > "$work/cpack.log" 2>&1) || { cat "$work/cpack.log"; exit 1; }
package=$(ls "$work"/packages/*.deb)
for needed in libtbb12 libdnnl2 libstdc++6; do
  dpkg -f "$package" Depends | grep -q "$needed" || { echo "$package does not depend on $needed"; exit 1; }
done
dpkg -x "$package" "$work/root"
cd "$work"
unset HEDDLE_PLUGIN_DIR
root/usr/bin/heddle model lenet -o lenet.heddle --quiet
root/usr/bin/heddle run lenet.heddle --random 1
for file in bin/heddle lib/libheddle.so.0 lib/heddle/plugins/cpu.so include/heddle/op.h share/man/man1/heddle-train.1 \
  share/bash-completion/completions/heddle share/zsh/vendor-completions/_heddle share/fish/vendor_completions.d/heddle.fish \
  share/doc/heddle/training.md lib/pkgconfig/heddle.pc; do
  [ -e "root/usr/$file" ] || { echo "the package lacks $file"; exit 1; }
done
rm -rf packages root
