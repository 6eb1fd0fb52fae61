#!/usr/bin/env bash
# Builds a local image of real Apache Kafka from Maven Central's jars, for machines that cannot pull apache/kafka.
# It takes the same KAFKA_* environment and has the same entry point, so the tests do not care which of the two runs.
#
#   .ci/kafka-image/build.sh [version] [tag]
#
# Needs a JDK with jlink, Maven, a static busybox and a running Docker Engine (.ci/install.sh sees to them). Does
# nothing when the tag was built from these files already.
set -euo pipefail

version=${1:-4.3.0}
tag=${2:-siding/kafka:$version}
here=$(cd "$(dirname "$0")" && pwd)

# The recipe's digest rides on the image as a label: an edited recipe is built anew, an unchanged one is not.
recipe=$(cat "$here"/{Dockerfile,build.sh,log4j2.yaml,pom.xml,run} | sha256sum | cut -c1-16)
built=$(docker image inspect -f '{{index .Config.Labels "siding.recipe"}}' "$tag" 2>/dev/null || true)
if [ "$built" = "$version-$recipe" ]; then
  echo "$tag is built already"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
machine=$(uname -m)
libs=/lib/$machine-linux-gnu
mkdir -p "$root"/{bin,tmp,etc/kafka/docker,opt/kafka/libs,var/lib/kafka} "$root$libs"

mvn -q -B -Dstyle.color=never -f "$here/pom.xml" -Dkafka.version="$version" dependency:copy-dependencies \
  -DoutputDirectory="$root/opt/kafka/libs" -DincludeScope=runtime </dev/null

jlink --strip-java-debug-attributes --no-header-files --no-man-pages --compress=2 --output "$root/opt/jre" --add-modules \
  java.base,java.desktop,java.logging,java.management,java.management.rmi,java.naming,java.security.jgss,java.security.sasl,java.sql,java.xml,jdk.unsupported,jdk.crypto.ec,jdk.management,jdk.jfr,jdk.zipfs

# The image starts from nothing, so it brings its own shell and the C library that the JVM is linked against.
cp "$(command -v busybox)" "$root/bin/busybox"
for applet in sh cat sleep env sed grep mkdir ls tail kill rm chmod test awk tr; do
  ln -s busybox "$root/bin/$applet"
done
for lib in libc.so.6 libgcc_s.so.1 libm.so.6 libstdc++.so.6 libz.so.1 libdl.so.2 libpthread.so.0 librt.so.1 \
  libnss_files.so.2 libnss_dns.so.2 libresolv.so.2; do
  for dir in "$libs" "/usr$libs"; do
    if [ -e "$dir/$lib" ]; then
      cp -L "$dir/$lib" "$root$libs/"
      break
    fi
  done
done
# The dynamic loader's path is part of the architecture's ABI; it is read from java itself instead of being guessed.
loader=$(ldd "$root/opt/jre/bin/java" | awk '$1 ~ /ld-linux/ {print $1}')
mkdir -p "$root$(dirname "$loader")"
cp -L "$loader" "$root$loader"

echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
cp "$here/log4j2.yaml" "$root/opt/kafka/"
install -m 755 "$here/run" "$root/etc/kafka/docker/run"
cp "$here/Dockerfile" "$work/"

# The classic builder: BuildKit would want to pull its frontend.
build() {
  DOCKER_BUILDKIT=0 docker build --label "siding.recipe=$1" -t "$tag" "$work" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
  }
}

# A broker that starts and ends leaves an archive of the classes that it loaded. With it the brokers of tests start on
# half of the CPU.
"$root/opt/jre/bin/java" -XX:+UseSerialGC -Xshare:dump >/dev/null
build training
trainee=$(docker run -d -e KAFKA_OPTS=-XX:ArchiveClassesAtExit=/tmp/classes.jsa -e KAFKA_JVM_PERFORMANCE_OPTS=-XX:+UseSerialGC \
  -e KAFKA_NODE_ID=1 -e KAFKA_PROCESS_ROLES=broker,controller -e KAFKA_CONTROLLER_QUORUM_VOTERS=1@localhost:9093 \
  -e KAFKA_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093 -e KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092 \
  -e KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER "$tag")
trap 'docker rm -f "$trainee" >/dev/null; rm -rf "$work"' EXIT
for _ in $(seq 60); do
  docker exec "$trainee" grep -q ':2384 ' /proc/net/tcp /proc/net/tcp6 && break # it listens on 9092
  sleep 1
done
docker stop -t 60 "$trainee" >/dev/null
docker cp -q "$trainee:/tmp/classes.jsa" "$root/opt/kafka/"
build "$version-$recipe"
echo "$tag built"
