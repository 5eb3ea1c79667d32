# Sourced by tools/gpu_test.sh: the parts that ask the device and NVIDIA's libraries, and the tests of devices.
# shellcheck shell=bash disable=SC2154

part_devices() {
  heddle devices
  local line
  line=$(grep '^cuda:0 ' "$out/devices.log") || skip "no device: $(sed -n 's/^cuda: none, //p' "$out/devices.log")"
  say "$line"
}

# A probe ends with 1 where a call fails, and with 2 where there is no device.
probe() { # PROGRAM ARGUMENT...
  local program=$1 status=0
  [ -x "$root/bin/$program" ] || skip "no bin/$program: there was no nvcc when the bundle was made, or this is a build tree"
  shift
  LD_LIBRARY_PATH=$HEDDLE_CUDA_LIBRARIES:$root/lib/shared "$root/bin/$program" "$@" || status=$?
  [ $status -ne 2 ] || skip "$(tail -n 1 "$out/$part.log")"
  return $status
}

part_facts() { # [--short]
  local status=0
  # What the device does now and may do: clocks, power, temperature. Settings are read, and none is written.
  if command -v nvidia-smi >/dev/null; then timeout 10 nvidia-smi -q -d CLOCK,POWER,TEMPERATURE >"$out/nvidia_smi.txt" 2>&1 || true; fi
  probe gpu_facts "$@" || status=$?
  [ $status -eq 0 ] || say "$(tail -n 1 "$out/$part.log")"
  [ $status -ne 0 ] || say "$(head -n 1 "$out/$part.log")"
  return $status
}

part_capture() {
  local status=0
  probe gpu_capture || status=$?
  sed -n '/\t/p' "$out/$part.log" >"$out/capture.tsv"
  say "$(awk -F '\t' '$3 == "allowed" { ++yes } $3 != "allowed" { ++no } END { printf "%d allowed, %d refused", yes, no }' "$out/capture.tsv")"
  [ $status -eq 0 ] || say "$(tail -n 1 "$out/$part.log")"
  return $status
}

device_tests() { # PROGRAM FILTER
  local status=0 passed not_for_it log=$out/$part.log
  ours env HEDDLE_TEST_GPU=1 "$root/bin/$1" --gtest_filter="$2" || status=$?
  passed=$(gtest_passes "$log")
  not_for_it=$(gtest_skips "$log")
  if [ $status -ne 0 ]; then
    say "${passed:-0} tests passed; failed: $(gtest_failures "$log")"
    return 1
  fi
  say "${passed:-0} tests passed, ${not_for_it:-0} are not for such a device"
  [ "${passed:-0}" -gt 0 ]
}

part_conformance() {
  local filter='*/cuda'
  [ "$quick" -eq 0 ] || filter='*DeviceNets.*/cuda:*DevicePlacement.*/cuda'
  device_tests heddle_device_tests "$filter"
}

# What one GPU can say of collectives between GPUs: one rank, two communicators, abort, an all-reduce against the memory's speed.
part_nccl() {
  [ -x "$root/bin/heddle_nccl_tests" ] || skip "no bin/heddle_nccl_tests: the plugin nccl was not built"
  local status=0
  device_tests heddle_nccl_tests '*OnOneGpu*' || status=$?
  # Of the largest all-reduce, beside the copy that is its roofline.
  [ $status -ne 0 ] || say "$(gtest_passes "$out/$part.log") tests passed; $(sed -n 's/^all-reduce of/all-reduce of/p' "$out/$part.log" | tail -n 1)"
  return $status
}
