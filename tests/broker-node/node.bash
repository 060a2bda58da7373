# Starts and stops nodes; for tests/with-broker and the programs that it makes.
# shellcheck shell=bash disable=SC2154,SC2016 # variables of with-broker; quoted programs

# Starts a program in a session of its own, whose id goes to a file.
launch() {
  "${enter[@]}" sh -c 'rm -f "$HOME/$0.pid"' "$1"
  "${enter[@]}" setsid sh -c 'echo $$ >"$HOME/$0.pid"; exec "$@" >>"$HOME/$0.out" 2>&1' "$@" \
    </dev/null >"$private/launch.out" 2>&1 &
  disown
  until [ -s "$private/node/$1.pid" ] || [ ! -d "/proc/$!" ]; do sleep 0.02; done
}

session() { cat "$private/node/$1.pid" 2>/dev/null; }

running() {
  local id
  id=$(session "$1") || return
  [[ $("${enter[@]}" sh -c 'cat /proc/[0-9]*/stat' 2>/dev/null) =~ \)\ [^ZX]\ [0-9]+\ $id\  ]]
}

signal() { "${enter[@]}" sh -c 'kill -s "$1" -- "-$0"' "$(session "$1")" "$2"; }

# Waits until none of its threads runs: on a busy machine the last may take a while.
stopped() {
  local id
  id=$(session "$1") || return
  while [[ $("${enter[@]}" sh -c 'cat /proc/[0-9]*/task/[0-9]*/stat' 2>/dev/null) =~ \)\ [^TZX]\ [0-9]+\ $id\  ]]; do
    sleep 0.05
  done
}

gone() {
  while running "$1"; do sleep 0.05; done
}

end() {
  if running "$1"; then signal "$1" KILL && gone "$1"; fi
}

numbers() { seq "${nodes:-1}"; }

# Sets what differs from node to node.
identify() {
  identity=(
    RABBITMQ_NODENAME="$cluster-$1@localhost" RABBITMQ_NODE_PORT="${amqp_ports[$1]}"
    RABBITMQ_DIST_PORT="${dist_ports[$1]}" RABBITMQ_LOGS="$home/node/node$1.log"
    RABBITMQ_GENERATED_CONFIG_DIR="$home/node/config$1"
  )
}

launch_node() {
  if running "node$1"; then echo "the node is running already" >&2; return 1; fi
  identify "$1"
  launch "node$1" env "${identity[@]}" rabbitmq-server
}

accepts_amqp() (
  exec 3<>"/dev/tcp/127.0.0.1/${amqp_ports[$1]}" &&
    printf 'AMQP\0\0\11\1' >&3 && read -rN1 -t5 -u3
) 2>/dev/null

await_node() {
  local deadline=$((SECONDS + 60))
  until accepts_amqp "$1"; do
    if [ $SECONDS -ge $deadline ] || ! running "node$1"; then
      tail -n 30 "$private/launch.out" "$private/node/node$1".{out,log} >&2 2>/dev/null || true
      echo "with-broker: the RabbitMQ node did not start" >&2
      return 1
    fi
    sleep 0.2
  done
}

# ctl_on NUMBER [ARG]...: rabbitmqctl for that node.
ctl_on() {
  identify "$1"
  "${enter[@]}" env "${identity[@]}" rabbitmqctl "${@:2}"
}

# rabbitmqctl for the first node that runs.
ctl() {
  local number
  for number in $(numbers); do
    if running "node$number"; then break; fi
  done
  ctl_on "$number" "$@"
}

node() {
  local number=${2:-1}
  case ${1:-} in
    start) launch_node "$number" && await_node "$number" ;;
    stop) ctl_on "$number" --quiet stop && gone "node$number" ;;
    kill) end "node$number" ;;
    pause) signal "node$number" STOP && stopped "node$number" ;;
    resume) signal "node$number" CONT ;;
    *) echo "Usage: \$RABBITMQ_NODE kill|stop|start|pause|resume [NUMBER]" >&2; return 2 ;;
  esac
}
