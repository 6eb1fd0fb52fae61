#!/usr/bin/env bash
# Installs what the tests on real Kafka need and a Debian or Ubuntu machine lacks, and sees to it that a Docker Engine
# answers. What is there is left alone, so it may run any number of times. Where it starts the Engine itself, the
# Engine's process id and log are .cache/dockerd.pid and .cache/dockerd.log.
set -euo pipefail
cd "$(dirname "$0")/.."

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

engine_answers() { docker info >/dev/null 2>&1; }

# A docker client alone is no Engine, and an Engine elsewhere (DOCKER_HOST) needs no local one.
packages=()
if ! engine_answers; then
  command -v dockerd >/dev/null || packages+=(docker.io)
  command -v iptables >/dev/null || packages+=(iptables)
fi
command -v make >/dev/null || packages+=(make)
# The image starts from nothing, so its shell must not need a library: the plain busybox package would.
[ -x /bin/busybox ] && ! ldd /bin/busybox >/dev/null 2>&1 || packages+=(busybox-static)
command -v jlink >/dev/null || packages+=(openjdk-17-jdk-headless)
command -v mvn >/dev/null || packages+=(maven)
# The race detector is built with cgo.
command -v gcc >/dev/null || packages+=(gcc libc6-dev)
command -v promtool >/dev/null || packages+=(prometheus)
command -v chromium >/dev/null || packages+=(chromium)
if [ ${#packages[@]} -gt 0 ]; then
  echo "installing ${packages[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi

if ! engine_answers; then
  mkdir -p .cache
  echo "starting dockerd"
  # In a session of its own, so that an interrupt meant for the tests does not take the Engine away from under them.
  as_root setsid sh -c 'echo $$ >"$0"; exec dockerd --userland-proxy=false >"$1" 2>&1 </dev/null' .cache/dockerd.pid .cache/dockerd.log >/dev/null 2>&1 &
  for _ in $(seq 60); do
    engine_answers && break
    sleep 1
  done
  engine_answers || {
    echo "no Docker Engine after 60 s; the end of its log:" >&2
    tail -n 20 .cache/dockerd.log >&2
    exit 1
  }
fi
docker version --format 'Docker client {{.Client.Version}}, Engine {{.Server.Version}}, API {{.Client.APIVersion}}'

make -s tools
