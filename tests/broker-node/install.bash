# Installs RabbitMQ; for tests/with-broker.
# shellcheck shell=bash disable=SC2154,SC2016 # variables of with-broker; quoted programs

# Prints the version that is installed on this machine.
installed() {
  command -v rabbitmq-server >/dev/null || return
  dpkg-query -Wf '${Version}' rabbitmq-server 2>/dev/null || echo unknown
}

can_be_root() { "${sudo[@]}" true 2>/dev/null; }

apt_get() {
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
}

retry() {
  local try
  for try in 1 2 3; do
    "$@" && return
    say "try $try of 3 failed: $*"
    sleep $((try * 3))
  done
  return 1
}

apt_install() { retry apt_get update && retry apt_get install -y --no-install-recommends "$@"; }

# Debian starts a service as soon as it is installed, unless a policy forbids it.
host_install() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap '"${sudo[@]}" rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${sudo[@]}" tee "$policy"
    "${sudo[@]}" chmod +x "$policy"
  fi
  apt_install rabbitmq-server
)

debian_mirror() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
    grep -Eo '^(deb|URIs:) .*' | grep -Eom1 'https?://[^ ]+/debian/?( |$)' || true
}

# Makes a folder that is there only when it is complete.
completely() { # FOLDER MAKE: runs MAKE PARTIAL-FOLDER
  [ ! -e "$1" ] || return 0
  retry "$2" "$1.partial"
  "${sudo[@]}" mv "$1.partial" "$1"
}

bootstrap() {
  local mirror
  mirror=$(debian_mirror)
  "${sudo[@]}" rm -rf "$1" &&
    "${sudo[@]}" unshare --mount debootstrap --variant=minbase --include=ca-certificates \
      "$base" "$1" ${mirror:+"${mirror% }"}
}

add_rabbitmq() {
  "${sudo[@]}" rm -rf "$1" &&
    "${sudo[@]}" cp -a "$cache/debian-$base" "$1" &&
    "${sudo[@]}" unshare --mount chroot "$1" sh -ec '
      export DEBIAN_FRONTEND=noninteractive
      printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d
      chmod +x /usr/sbin/policy-rc.d
      sed -i "s/ $1 / $2 /" /etc/apt/sources.list
      grep -qs localhost /etc/hosts || echo "127.0.0.1 localhost" >>/etc/hosts
      mount -t proc proc /proc
      apt="apt-get -qq -o Acquire::Retries=3 -o Acquire::Check-Valid-Until=false"
      $apt update
      $apt install -y --no-install-recommends rabbitmq-server
      $apt clean
      rm -rf /var/lib/apt/lists/*' sh "$base" "$suite"
}

install_root() {
  local base=${suite/sid/trixie} # sid cannot always be bootstrapped
  command -v debootstrap || apt_install debootstrap debian-archive-keyring
  completely "$cache/debian-$base" bootstrap
  completely "$root" add_rabbitmq
}

# One at a time over all runs; in a process group of its own, to be stopped as a whole.
install_with() {
  local log=$private/install.log
  "${sudo[@]}" mkdir -p "$cache"
  set -m
  { flock 9; "$@"; } 9<"$cache" </dev/null >"$log" 2>&1 &
  installing=$!
  set +m
  wait "$installing" || { tail -n 20 "$log" >&2 || true; die "RabbitMQ could not be installed"; }
  installing=''
}
