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

# sid cannot always be bootstrapped: its base is trixie's.
build_root() {
  local root=$1 base=${suite/sid/trixie} mirror
  mirror=$(debian_mirror)
  "${sudo[@]}" rm -rf "$root" &&
    "${sudo[@]}" unshare --mount debootstrap --variant=minbase --include=ca-certificates \
      "$base" "$root" ${mirror:+"${mirror% }"} &&
    "${sudo[@]}" unshare --mount chroot "$root" sh -ec '
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
  [ ! -e "$root" ] || return 0 # another run was faster
  command -v debootstrap || apt_install debootstrap debian-archive-keyring
  retry build_root "$cache/.$version.partial"
  "${sudo[@]}" mv "$cache/.$version.partial" "$root"
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
