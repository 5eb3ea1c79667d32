#!/bin/bash
# gpu_test_script.sh SOURCE BUILD WORK: what tools/gpu_test.sh says where there is no device, on the stand-in, and on one that is broken.
set -euo pipefail
trap 'echo "line $LINENO: not as expected"' ERR
source=$1 build=$2 work=$3
for built in bin/heddle bin/heddle_conformance_tests bin/heddle_device_tests lib/cuda.so lib/test/cuda_standin.so; do
  [ -e "$build/$built" ] || {
    echo "$build/$built is not built"
    exit 1
  }
done
rm -rf "$work"
mkdir -p "$work"

# EXIT-STATUS NAME VARIABLE...: a quick run with these variables; its table is $work/NAME/table.txt. plan=PLAN and only=PARTS are options.
quick() {
  local expected=$1 name=$2 status=0 variable
  local -a options=()
  shift 2
  for variable in "$@"; do
    case $variable in plan=* | only=*) options+=("--${variable%%=*}" "${variable#*=}") ;; esac
  done
  env "$@" "$source/tools/gpu_test.sh" "${options[@]}" --quick --out "$work/$name" "$build" >"$work/$name.txt" 2>&1 || status=$?
  cat "$work/$name.txt"
  [ $status -eq "$expected" ] || {
    echo "$name: exit status $status, expected $expected"
    exit 1
  }
}
# NAME RESULT PART...: these rows of the table have that result.
rows_are() {
  local name=$1 result=$2 part
  shift 2
  for part in "$@"; do
    grep -qE "^$part +$result " "$work/$name/table.txt" || {
      echo "$name: $part is not $result"
      exit 1
    }
  done
}

# What lies in a folder that is not its own stays there, and it says what to do.
mkdir -p "$work/foreign" "$work/other_table"
echo kept >"$work/foreign/letter"
echo kept >"$work/other_table/table.txt"
for name in foreign other_table; do
  quick 2 "$name" HEDDLE_CUDA_STANDIN= CUDA_VISIBLE_DEVICES=-1
  grep -q "^gpu_test: $work/$name is neither empty nor the folder of an earlier run, .*: name another with --out, or delete it\$" "$work/$name.txt"
done
grep -qx kept "$work/foreign/letter"
grep -qx kept "$work/other_table/table.txt"
# An empty one is taken, and one of an earlier run replaced.
mkdir "$work/no_device"
quick 0 no_device HEDDLE_CUDA_STANDIN= CUDA_VISIBLE_DEVICES=-1
touch "$work/no_device/old.log"
quick 0 no_device HEDDLE_CUDA_STANDIN= CUDA_VISIBLE_DEVICES=-1
[ ! -e "$work/no_device/old.log" ] || {
  echo "no_device: a file of the earlier run is left"
  exit 1
}
rows_are no_device skipped devices facts conformance operators memcheck racecheck 'mlp x1' 'pytorch resnet50 x1'
grep -q '^gpu_test: 0 passed, 0 failed, 8 skipped, ' "$work/no_device.txt"
grep -q '^gpu_test: no device: .' "$work/no_device.txt"

standin=HEDDLE_CUDA_STANDIN=$build/lib/test/cuda_standin.so
quick 0 standin "$standin"
rows_are standin passed devices conformance operators 'mlp x1'
rows_are standin skipped facts memcheck racecheck 'pytorch resnet50 x1'
grep -qE '^operators +passed .* 3 right, [1-9][0-9]* calls' "$work/standin/table.txt"

# The other plan, on the same: a list of parts, which are what it runs.
quick 0 speed "$standin" plan=speed
rows_are speed passed devices nccl 'operators changed' attention 'training mlp' 'nets mlp x1'
rows_are speed skipped facts capture 'memcheck new' 'racecheck new' pytorch
diff <("$source/tools/gpu_test.sh" --plan speed --quick --list | cut -f1) <(tail -n +2 "$work/speed/results.tsv" | cut -f1)
grep -qE '^nccl +passed .* 4 tests passed; all-reduce of [0-9]+ bytes by one rank: .* GB/s; a copy: ' "$work/speed/table.txt"
grep -qE '^operators changed +passed .* 3 right, [1-9][0-9]* calls' "$work/speed/table.txt"
grep -qE '^right [A-Za-z_]+ [0-9]+ ms$' "$work/speed/operators_changed.list"
[ "$(grep -cE '^(f16|bf16)\s\S+\s(fused\scuda:cudnn_attention|composed\scuda:cublaslt_attention)\s.*\sright$' "$work/speed/attention.tsv")" -eq 4 ]
[ "$(grep -cE '^(f16|bf16)\s\S+\s(fused|composed)\smedian [0-9.]+ [mu]s' "$work/speed/attention_times.tsv")" -eq 4 ]
grep -qE '^nets mlp x1 +passed .* as on the host; f32 [0-9.]+ ms; tf32 [0-9.]+ ms; bf16 [0-9.]+ ms$' "$work/speed/table.txt"
grep -qE '"net": "mlp", .*"steps": 5, .*"same_bits": true, .*"on_host": "' "$work/speed/train.jsonl"
[ "$(grep -c '"latency_ns"' "$work/speed/bench.jsonl")" -eq 3 ]

[ "$(tar -tzf "$work/speed/logs.tar.gz" | grep -cx ./attention.tsv)" -eq 1 ]

# Some parts again: the other rows stay, in their order, and so do the compiled kernels.
cp "$work/speed/results.tsv" "$work/before.tsv"
touch "$work/now"
quick 0 speed "$standin" plan=speed only=attention,nets_mlp
diff <(cut -f1,2 "$work/before.tsv") <(cut -f1,2 "$work/speed/results.tsv")
[ "$work/speed/attention.tsv" -nt "$work/now" ] && [ "$work/now" -nt "$work/speed/operators_changed.list" ]
grep -qE '^gpu_test: kernels: 0 compiled, [1-9][0-9]* of the [1-9][0-9]* that were there used$' "$work/speed.txt"
grep -q '^gpu_test: 3 passed, 0 failed, 0 skipped, ' "$work/speed.txt"

# What is trained is trained on the device, which compiles more kernels than the one of each device that is opened.
quick 0 trained "$standin" plan=speed only=training
grep -qE '^gpu_test: kernels: ([2-9]|[1-9][0-9]+) compiled, 0 of the 0 that were there used$' "$work/trained.txt"
grep -q '^gpu_test: 2 passed, 0 failed, 0 skipped, ' "$work/trained.txt"

# What is no part, and no plan.
quick 2 unknown "$standin" plan=speed only=attention,conformance
grep -q '^gpu_test: the plan speed has no part "conformance"; it has: devices, facts, capture, nccl, operators changed, attention, ' "$work/unknown.txt"
quick 2 unknown "$standin" plan=whole
grep -qx 'gpu_test: there is no plan "whole": full or speed' "$work/unknown.txt"
[ ! -e "$work/unknown" ]

# A run that is ended while a part goes on keeps the rows that it had, and leaves nothing that runs.
mkdir -p "$work/slow/bin"
cat >"$work/slow/bin/heddle" <<'END'
#!/bin/bash
case $1 in
  --version) echo "heddle 0" ;;
  devices) echo "cuda:0  1 GiB  slow" ;;
  model) touch "$5.safetensors" && exec sleep 300 ;;
esac
END
cat >"$work/slow/bin/heddle_device_tests" <<END
#!/bin/bash
echo \$\$ >"$work/slow/pid"
exec sleep 300
END
chmod +x "$work"/slow/bin/*
env "$standin" "$source/tools/gpu_test.sh" --quick --out "$work/cut" "$work/slow" >"$work/cut.txt" 2>&1 &
script=$!
for _ in $(seq 200); do
  [ ! -s "$work/slow/pid" ] || break
  sleep 0.1
done
rows_are cut passed devices
kill -TERM $script
status=0
wait $script || status=$?
[ $status -eq 130 ] || {
  echo "cut: exit status $status, expected 130"
  exit 1
}
rows_are cut passed devices
rows_are cut skipped facts
[ "$(wc -l <"$work/cut/results.tsv")" -eq 3 ]
for _ in $(seq 50); do
  kill -0 "$(cat "$work/slow/pid")" 2>/dev/null || break
  sleep 0.1
done
! kill -0 "$(cat "$work/slow/pid")" 2>/dev/null || {
  echo "cut: its part still runs"
  exit 1
}

# One that its limit ends leaves no weights, and does not stop the next.
status=0
env "$standin" "$source/tools/gpu_test.sh" --quick --plan speed --only training,pytorch --seconds 8 --out "$work/limited" "$work/slow" || status=$?
[ $status -eq 1 ]
rows_are limited FAILED 'training mlp'
rows_are limited skipped pytorch
grep -qE '^training mlp +FAILED .* time limit of [0-9]+ s' "$work/limited/table.txt"
[ -d "$work/limited/training_mlp" ] && [ -z "$(find "$work/limited" -name '*.safetensors')" ]

# Nothing fits into it.
quick 1 broken "$standin" HEDDLE_CUDA_STANDIN_MEMORY=3
rows_are broken FAILED conformance operators 'mlp x1'
grep -qE '^operators +FAILED .*wrong: Gather Relu Transpose' "$work/broken/table.txt"

# The part for compute-sanitizer, with one that ends as the operator's name is told to end.
sanitizer_part() { # STATUS, with what the last line of the detail is
  local expected=$1 status=0
  mkdir -p "$work/sanitizer"
  env HEDDLE_CUDA_STANDIN= PATH="$work/tools:$PATH" quick=0 out="$work/sanitizer" root="$build" \
    "$source/tools/gpu_test.sh" --part memcheck part_sanitizer memcheck >"$work/sanitizer.txt" 2>&1 || status=$?
  cat "$work/sanitizer.txt" "$work/sanitizer/memcheck.detail"
  [ $status -eq "$expected" ] || {
    echo "compute-sanitizer: exit status $status, expected $expected"
    exit 1
  }
}
mkdir "$work/tools"
fake=$work/tools/compute-sanitizer
cat >"$fake" <<'END'
#!/bin/bash
operator=${@: -1}
operator=${operator##*/}
case " $CRASHES " in *" $operator "*) echo "about to crash"; kill -SEGV $$ ;; esac
case " $ABORTS " in *" $operator "*) echo "about to abort"; kill -ABRT $$ ;; esac
case " $ERRORS " in *" $operator "*) echo "========= ERROR SUMMARY: 3 errors"; exit 99 ;; esac
case " $FAILS " in *" $operator "*) echo "========= ERROR SUMMARY: 0 errors"; echo "1 FAILED TEST"; exit 1 ;; esac
case " $SLOW " in *" $operator "*) exit 124 ;; esac
case " $SKIPS " in *" $operator "*) echo "[  PASSED  ] 0 tests."; echo "========= ERROR SUMMARY: 0 errors"; exit 0 ;; esac
echo "[  PASSED  ] 1 test."
echo "========= ERROR SUMMARY: 0 errors"
END
chmod +x "$fake"
sanitizer_says() { # the whole detail
  [ "$(cat "$work/sanitizer/memcheck.detail")" = "$1" ] || {
    echo "compute-sanitizer: expected $1"
    exit 1
  }
}
export CRASHES='' ABORTS='' ERRORS='' FAILS='' SLOW='' SKIPS=''
sanitizer_part 0
sanitizer_says 'clean: CumSum GRU Gather NonZero ReduceSum Relu Softmax TopK Transpose '
SLOW='GRU' sanitizer_part 0
sanitizer_says 'clean: CumSum Gather NonZero ReduceSum Relu Softmax TopK Transpose ; not finished: GRU '
CRASHES='Relu' ABORTS='TopK' ERRORS='GRU' FAILS='Gather' SKIPS='CumSum' SLOW='NonZero' sanitizer_part 1
for said in 'Relu (exit status 139: about to crash)' 'TopK (exit status 134: about to abort)' 'GRU (exit status 99: ========= ERROR SUMMARY: 3 errors)' \
  'Gather (exit status 1: 1 FAILED TEST)' 'CumSum (exit status 0: ========= ERROR SUMMARY: 0 errors)'; do
  grep -qF "$said" "$work/sanitizer/memcheck.detail" || {
    echo "compute-sanitizer: not told: $said"
    exit 1
  }
done

# The part of PyTorch, with one that measures, fails, and then takes longer than there is.
mkdir -p "$work/python" "$work/pytorch"
cat >"$work/python/python3" <<'END'
#!/bin/bash
case " $* " in *' --list '*) printf '{}\n{}\n{}\n'; exit ;; esac
printf '{"net": "mlp", "median_ms": 1.5}\n{"net": "dlrm", "error": "no"}\n' >"${@: -1}"
exec sleep 60
END
chmod +x "$work/python/python3"
env HEDDLE_CUDA_STANDIN= PATH="$work/python:$PATH" quick=0 part_seconds=7 out="$work/pytorch" root="$build" \
  "$source/tools/gpu_test.sh" --part pytorch part_pytorch_all
[ "$(cat "$work/pytorch/pytorch.detail")" = '1 of 3 measured, 1 failed, the rest not within 2 s' ]
# The real one says what it would measure without PyTorch, and ends with 3 where that sees no GPU or is not there.
if command -v python3 >/dev/null; then
  bench=$source/tools/gpu/pytorch_bench.py
  [ "$(python3 "$bench" --list --only mlp | grep -c '"way": "\(eager\|compile\)"}$')" -eq 12 ]
  [ "$(python3 "$bench" --list | wc -l)" -gt 60 ]
  status=0
  CUDA_VISIBLE_DEVICES=-1 python3 "$bench" --all >"$work/pytorch.txt" || status=$?
  [ $status -eq 3 ] && grep -qE '^PyTorch (does not import: |sees no GPU)' "$work/pytorch.txt"
  status=0
  python3 "$bench" --list --only alexnet 2>/dev/null || status=$?
  [ $status -eq 2 ]
fi

# The part of all operators, with a program for them that ends as it is told. Some come in parts, which share their calls.
mkdir -p "$work/root/bin" "$work/operators"
cat >"$work/root/bin/heddle_conformance_tests" <<'END'
#!/bin/bash
if [ "$1" = --gtest_list_tests ]; then
  printf 'Operators/OnDevice.\n'
  printf '  AgreesWithItsReference/%s  # GetParam() = 1\n' Abs Max Min Relu Resize
  exit
fi
name=${1##*/}
case "$name $HEDDLE_CONFORMANCE_PART" in
  'Relu 1/1') echo "[  SKIPPED ] 1 test" ;;
  'Min 3/4') printf 'x.cc:1: Failure\nFailed\nelement 2 is 3\n'; exit 1 ;;
  'Resize 2/4') sleep 60 ;;
  *) echo "$name on cuda:0: 10 calls judged, 0 wrong, 0 without a kernel" ;;
esac
END
chmod +x "$work/root/bin/heddle_conformance_tests"
status=0
env HEDDLE_CUDA_STANDIN= quick=0 part_seconds=13 out="$work/operators" root="$work/root" \
  "$source/tools/gpu_test.sh" --part operators part_operators >"$work/operators.txt" 2>&1 || status=$?
cat "$work/operators.txt" "$work/operators/operators.detail"
[ $status -eq 1 ] && [ "$(cat "$work/operators/operators.detail")" = '2 right, 110 calls, 1 without a kernel, wrong: Min:3/4 , 1 not finished' ] || {
  echo "operators: exit status $status, and not what was expected"
  exit 1
}
for said in 'wrong: Min:3/4: element 2 is 3' 'not finished: Resize:2/4 ' 'without a kernel there: Relu '; do
  grep -qF "$said" "$work/operators.txt" || {
    echo "operators: not told: $said"
    exit 1
  }
done
# The longest come first.
[ "$(head -n 1 "$work/operators/operators.names")" = Max:1/4 ] && [ "$(tail -n 1 "$work/operators/operators.names")" = Relu ]
