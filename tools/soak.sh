#!/bin/bash
# tools/soak.sh [--seconds N] [--cases N] [--seed S] [--libfuzzer | --hostile | --differential | --planted | --waits | --steady | --training | --spread |
#               --mutants | --kernels | --architectures | --fusion | --peers | --replicas | --imported |
#               --ranks]
#
# The long hunts, for a night rather than for every change. The seed is printed; the same seed gives the same cases. What was under way when
# something died lies in build/soak. Each ends with 1 when it found something.
#
# Without a word: net files, damaged in all ways, through load, resolve, infer, transform, verify and compile, and half of the time a run, under
# AddressSanitizer and UndefinedBehaviorSanitizer for N seconds (default 600). A crash, a hang, a report, a broken promise of the library or a
# case over one second is a finding.
# --libfuzzer     the same under libFuzzer, guided by coverage; needs clang and its runtime (libclang-rt-dev).
# --hostile       single hostile operators (16,000, or --cases) and mutated ONNX models (a quarter of them) under both sanitizers, 2 s each.
# --differential  ONNX models of one operator and of graphs (50,000 in at most two hours) against onnxruntime and PyTorch from PyPI;
#                 tests/differential/README.md. Needs 6 GB for them in build/soak/venv.
# --planted       puts ten bugs into a copy of the sources, one by one, and says after how many cases the fuzzers found each.
# --waits         how long writes of a variable wait beside eight readers (for 10 s, or --seconds), and how much later than its deadline each kind of run
#                 comes back; prints, judges nothing.
# --spread        20 nets spread at random over the host and simulated devices, under 500 seeds of delays each (tests/device/spread_test.cc),
#                 and 5,000 whose extents only the run knows (tests/device/late_test.cc).
# --mutants       750 plans of ten nets with one thing wrong each: what share shows on simulated devices within 100 seeds, by kind, and what does not
#                 (tests/device/mutant_test.cc); the same for update phases on devices and for runs of ranks (tail_mutant_test.cc, run_mutants_test.cc).
# --kernels       25 (or --cases) bugs, planted by seed into the kernels of a copy of the CPU plugin, one by one: how many of them the conformance suite
#                 finds, and those that it does not (tests/conformance/planted.py).
# --architectures every generated CUDA source with NVRTC for sm_80 and sm_100, beside sm_90 of the tests (tests/cuda/nvrtc_test.cc). Needs NVRTC, no GPU.
# --training      one thread trains beside four that test and one that saves, for 60 s (or --seconds; tests/session/trainer_and_evaluators_test.cc); then
#                 10,000 steps, behind each hundred of which the process holds what it held, and the allocations of 1,000 (tests/steady_state).
# --fusion        10,000 random nets of pointwise operators and 2,000 that are trained, fused and not: what compiles and runs without fusion does so
#                 with it, to the same bits (tests/transform/random_fusion_test.cc).
# --peers         every fault of one rank at every step of a net that trains over 2 and 3 ranks (tests/plugin/peers_matrix_test.cc).
# --replicas      faults at every step of three data-parallel nets, on devices and on ranks, 500 schedules of eight devices beside a storm of
#                 allocations (tests/collectives), and 10,000 steps on two devices that hold what they held (tests/steady_state).
# --imported      seven nets that PyTorch exports, made trainable by the command alone: 20 losses of sgd and adam against PyTorch's, and trainings that are
#                 killed and resumed (tests/differential/imported_training.py). Installs Debian's PyTorch, scikit-learn and statsmodels.
# --ranks         processes that train together, of which one is killed, stopped or cut off: each rank of 3 and of 4 at 10 steps of the plan, and 200
#                 at any moment (tests/collectives); then 300 (or --cases) trainings under mpirun, whose ranks and Redis server are killed at any
#                 moment (tests/tool/train/started_ranks.py). Needs Open MPI and Redis.
# --steady        counts the allocations of 1,000 runs of every demo net (tests/steady_state), which takes most of an hour.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=
cases=
seed=$(date +%s)
what=nets
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:?--seconds takes a number}; shift 2 ;;
    --cases) cases=${2:?--cases takes a number}; shift 2 ;;
    --seed) seed=${2:?--seed takes a number}; shift 2 ;;
    --libfuzzer | --hostile | --differential | --planted | --waits | --steady | --training | --spread | --mutants | --kernels | --architectures | --fusion | --peers | --replicas | --imported | --ranks) what=${1#--}; shift ;;
    *) sed -n '2,4p' "$0" | cut -c3- >&2; exit 2 ;;
  esac
done
mkdir -p build/soak

# The interpreter with the other runtimes, made once.
venv() {
  local python=build/soak/venv/bin/python
  if ! $python -c 'import onnx, onnxruntime, torch' 2>/dev/null; then
    echo "soak: installing onnxruntime, onnx and PyTorch into build/soak/venv"
    python3 -m venv build/soak/venv
    $python -m pip install --quiet --disable-pip-version-check onnxruntime onnx numpy ml_dtypes torch
  fi
  $python -c 'import onnx, onnxruntime, torch; print("soak: onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "torch", torch.__version__)'
}

case $what in
  peers)
    tools/install_packages.sh
    cmake --preset dev
    cmake --build --preset dev --target heddle_plugin_tests cpu sim peers
    HEDDLE_LONG_TESTS=1 exec build/dev/bin/heddle_plugin_tests --gtest_filter='*PeersMatrix*'
    ;;
  replicas)
    tools/install_packages.sh
    cmake --preset dev
    cmake --build --preset dev --target heddle_collectives_tests heddle_steady_state_tests cpu sim
    HEDDLE_LONG_TESTS=1 build/dev/bin/heddle_collectives_tests --gtest_filter='ReplicaFaults.*:RankFaults.*:ReplicasHunt.*'
    HEDDLE_LONG_TESTS=1 exec build/dev/bin/heddle_steady_state_tests --gtest_filter='*TwoDevices*'
    ;;
  imported)
    tools/install_packages.sh python3-torch python3-onnx python3-sklearn python3-statsmodels
    cmake --preset dev
    cmake --build --preset dev --target heddle_tool cpu
    exec /usr/bin/python3 tests/differential/imported_training.py --heddle build/dev/bin/heddle
    ;;
  spread)
    tools/install_packages.sh
    cmake --preset dev
    cmake --build --preset dev --target heddle_device_tests cpu sim bare
    HEDDLE_LONG_TESTS=1 exec build/dev/bin/heddle_device_tests --gtest_filter='*Spread*:*DeviceLate.Random*'
    ;;
  mutants)
    tools/install_packages.sh
    cmake --preset dev
    cmake --build --preset dev --target heddle_device_tests heddle_plugin_tests cpu sim bare peers
    for tests in plugin device; do HEDDLE_LONG_TESTS=1 build/dev/bin/heddle_${tests}_tests --gtest_filter='*Mutant*'; done
    ;;
  architectures)
    tools/install_packages.sh
    cmake --preset dev
    cmake --build --preset dev --target heddle_cuda_tests cpu
    for architecture in sm_80 sm_100; do
      echo "soak: $architecture"
      HEDDLE_TEST_ARCHITECTURE=$architecture build/dev/bin/heddle_cuda_tests --gtest_filter='Nvrtc.*:PointwiseSource.*:ChainSource.NvrtcTakesThem'
    done
    ;;
  kernels)
    tools/install_packages.sh
    mkdir -p build/planted/source
    git ls-files -z | tar --null --create --files-from - | tar --extract --directory build/planted/source
    cmake -S build/planted/source -B build/planted/build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -g1"
    cmake --build build/planted/build --target heddle_conformance_tests cpu
    exec python3 tests/conformance/planted.py --build build/planted --seed "$seed" --count "${cases:-25}"
    ;;
  steady)
    tools/install_packages.sh
    cmake --preset dev
    cmake --build --preset dev --target heddle_steady_state_tests cpu
    HEDDLE_LONG_TESTS=1 exec build/dev/bin/heddle_steady_state_tests
    ;;
  training)
    tools/install_packages.sh
    cmake --preset dev
    cmake --build --preset dev --target heddle_session_tests heddle_steady_state_tests cpu
    HEDDLE_TRAINER_SECONDS="${seconds:-60}" build/dev/bin/heddle_session_tests --gtest_filter='TrainerAndEvaluators.*'
    HEDDLE_LONG_TESTS=1 exec build/dev/bin/heddle_steady_state_tests --gtest_filter='SteadyState.*Training*'
    ;;
  fusion)
    tools/install_packages.sh
    cmake --preset dev
    cmake --build --preset dev --target heddle_transform_tests cpu sim
    HEDDLE_LONG_TESTS=1 exec build/dev/bin/heddle_transform_tests --gtest_filter='RandomFusion.*'
    ;;
  ranks)
    tools/install_packages.sh
    cmake --preset dev
    cmake --build --preset dev --target heddle_collectives_tests heddle_tool cpu sim gloo_plugin
    HEDDLE_TEST_SEED=$seed HEDDLE_LONG_TESTS=1 build/dev/bin/heddle_collectives_tests --gtest_filter='ProcessFaults.*:*RankFaults.*'
    exec tests/tool/train/started_ranks.py --heddle build/dev/bin/heddle --starts "${cases:-300}" --seed "$seed"
    ;;
  waits)
    tools/install_packages.sh libbenchmark-dev
    cmake -S . -B build/bench -G Ninja -DCMAKE_BUILD_TYPE=Release -DHEDDLE_BUILD_BENCHMARKS=ON
    cmake --build build/bench --target heddle_wait_bench cpu bare
    exec build/bench/bin/heddle_wait_bench "${seconds:-10}"
    ;;
  libfuzzer)
    tools/install_packages.sh clang libclang-rt-dev
    cmake -S . -B build/fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_BUILD_TYPE=RelWithDebInfo \
      -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -DHEDDLE_BUILD_FUZZERS=ON -DHEDDLE_SANITIZE=address,undefined
    cmake --build build/fuzz --target heddle_net_libfuzzer
    mkdir -p build/soak/corpus
    echo "soak: ${seconds:=600} s under libFuzzer, seed $seed"
    exec build/fuzz/bin/heddle_net_libfuzzer build/soak/corpus -artifact_prefix=build/soak/ -seed="$((seed % 4294967296))" \
      -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=4096 -malloc_limit_mb=512 -print_final_stats=1
    ;;
  differential)
    tools/install_packages.sh python3-venv
    venv
    cmake --preset dev
    cmake --build --preset dev --target heddle_differential_driver cpu
    exec build/soak/venv/bin/python tests/differential/fuzz.py --driver build/dev/bin/heddle_differential_driver --keep build/soak \
      --cases "${cases:-50000}" --seconds "${seconds:-7200}" --seed "$seed"
    ;;
  planted)
    tools/install_packages.sh python3-venv
    venv
    exec tests/fuzz/planted/hunt.sh --seed "$seed"
    ;;
esac

tools/install_packages.sh
cmake --preset asan
if [ $what = hostile ]; then
  cmake --build --preset asan --target heddle_operator_fuzz heddle_onnx_fuzz
  : "${cases:=16000}" "${seconds:=7200}"
  echo "soak: $cases hostile operators and $((cases / 4)) mutated models with seed $seed"
  status=0
  build/asan/bin/heddle_operator_fuzz --cases "$cases" --seconds "$seconds" --seed "$seed" --keep build/soak/operator.case || status=1
  build/asan/bin/heddle_onnx_fuzz --cases $((cases / 4)) --seconds "$seconds" --seed "$seed" --keep build/soak/onnx.case || status=1
  exit $status
fi
cmake --build --preset asan --target heddle_net_fuzz
: "${seconds:=600}"
for run in "" --run; do
  echo "soak: $((seconds / 2)) s with seed $seed, ${run:-as far as compile}"
  build/asan/bin/heddle_net_fuzz --seconds $((seconds / 2)) --seed "$seed" --keep build/soak/net.case $run
done
